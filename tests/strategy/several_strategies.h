// The same variable under several strategies: on parameter servers, on one device and on two
// replicas.
#pragma once
#include <functional>
#include <memory>
#include <numeric>

#include "tests/strategy/recorded_strategies.h"
#include "tests/strategy/servers/turns.h"

namespace cairn::testing {

inline Tensor arange(const Shape& shape) {
  Tensor made(DType::kFloat32, shape);
  auto values = made.mutable_values<float>();
  std::iota(values.begin(), values.end(), 0.0f);
  return made;
}

// The other strategies for all cases, and a cluster for those with the same number of parts: a
// thread has one simulated cluster at a time.
class SeveralStrategies {
 public:
  Turns& cluster(std::int64_t parts) {
    if (parts_ != parts) {
      release();
      cluster_ = std::make_unique<Turns>(3, FixedShardsPartitioner(parts));
      parts_ = parts;
    }
    return *cluster_;
  }
  void release() {
    cluster_.reset();
    parts_ = 0;
  }
  // Calls `use` with a new variable of each strategy, which holds an arange.
  void each(const Json& in, const std::function<void(Strategy&, const Variable&)>& use) {
    const Shape shape = shape_of(in.at("shape"));
    Strategy* const all[] = {&cluster(in.at("num_shards")).cluster.strategy(), &one_, &two_};
    for (Strategy* strategy : all) {
      SCOPED_TRACE(strategy == all[0]  ? "on ps"
                   : strategy == &one_ ? "one device"
                                       : "two replicas");
      auto scope = strategy->scope();
      use(*strategy, strategy->create_variable({.name = "v",
                                                .shape = shape,
                                                .initializer = Initializer::from(arange(shape)),
                                                .aggregation = Aggregation::kSum}));
    }
  }

 private:
  std::unique_ptr<Turns> cluster_;
  std::int64_t parts_ = 0;
  OneDeviceStrategy one_;
  MirroredStrategy two_{logical_cpus(2)};
};

}  // namespace cairn::testing
