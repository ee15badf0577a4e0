// Ps servers for the worker's tests: they hold rows as floats, note what they are asked, and answer
// when the test lets them.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/wire/wire.h"
#include "core/rows/layout.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "rpc/server/server.h"
#include "worker/rows/shard_link.h"

namespace cairn::worker {

struct Asked {
  ShardId shard = 0;
  std::uint64_t closure = 0;
  bool push = false;
  // of a pull: only the rows, and not those of which the asker has a copy
  std::vector<PartUpdate> parts;
  std::vector<std::int64_t> ids;         // local to the part
  std::vector<float> values;             // of a push, decoded
  std::size_t value_bytes = 0;           // on the wire
  bool shared = false;                   // the values are in shared memory,
  std::vector<std::uint64_t> values_at;  // here, of a push header by header
  ShardVersion pulled;
  LaneIncarnation incarnation;
  Epoch epoch;
  std::uint32_t push_number = 0;
  std::uint32_t piece = 0, pieces = 1, slice = 0;
};

// "pull 7", "push 7": what, and of which closure.
inline std::string name_of(const Asked& asked) {
  return str(asked.push ? "push " : "pull ", asked.closure);
}

// by variable and part
using Rows = std::map<std::pair<VariableId, std::uint32_t>, std::vector<float>>;

// One shard's state and service.
struct FakeShard {
  ShardId id = 0;
  ShardVersion version;
  Rows rows;
  std::map<VariableId, std::int64_t> dims;
  // as the wire has it, where it is not 1
  std::map<std::pair<VariableId, std::uint32_t>, std::uint64_t> written;
};

class FakeCluster;

class FakeShardService final : public wire::Shard::Server {
 public:
  FakeShardService(FakeCluster& cluster, std::shared_ptr<FakeShard> shard,
                   std::shared_ptr<rpc::SharedMemory> shared)
      : cluster_(cluster), shard_(std::move(shard)), shared_(std::move(shared)) {}
  kj::Promise<void> pull(PullContext context) override;
  kj::Promise<void> push(PushContext context) override;

 private:
  FakeCluster& cluster_;
  std::shared_ptr<FakeShard> shard_;
  std::shared_ptr<rpc::SharedMemory> shared_;
};

class FakeCluster {
 public:
  // Variables are float32, dealt out in equal parts to all ps, one shard each. Row r of variable v,
  // column c starts as 1000 v + r + c / 8.
  FakeCluster(std::size_t ps, std::vector<std::pair<std::string, Shape>> variables,
              rpc::SimNetworkOptions options = {});

  ~FakeCluster() noexcept {}

  rpc::SimReactor reactor;
  rpc::SimNetwork network;
  std::shared_ptr<Layout> layout;
  std::vector<Asked> asked;  // in the order of arrival
  // Called before a request is served; its answer waits for what this returns. What it throws is
  // the answer.
  std::function<kj::Promise<void>(const Asked&)> before = [](const Asked&) -> kj::Promise<void> {
    return kj::READY_NOW;
  };
  std::uint64_t staleness = 0;

  void stop_ps(std::uint32_t ps) {
    network.crash(str("ps", ps));
    doors_.at(ps).reset();
  }
  // With initial rows and another lineage; the layout is not touched.
  void start_ps(std::uint32_t ps);
  std::vector<std::string> events() const {
    std::vector<std::string> names;
    for (const Asked& one : asked) names.push_back(name_of(one));
    return names;
  }
  std::vector<Asked> pushes() const {
    std::vector<Asked> all;
    for (const Asked& one : asked)
      if (one.push) all.push_back(one);
    return all;
  }
  float row(VariableId variable, std::int64_t row, std::int64_t column = 0) const;
  FakeShard& shard(ShardId id) { return *shards_.at(id); }

  // Runs the loop until `done` or nothing can happen any more.
  template <typename F>
  bool run_until(F done) {
    for (int i = 0; i < 10'000 && !done(); ++i) reactor.advance(std::chrono::microseconds(200));
    return done();
  }

 private:
  friend class FakeShardService;
  void fill(FakeShard& shard) const;
  std::vector<std::shared_ptr<FakeShard>> shards_;
  std::vector<std::unique_ptr<rpc::Acceptor>> doors_;
  std::uint64_t next_lineage_ = 100;
};

inline float initial_value(VariableId variable, std::int64_t row, std::int64_t column) {
  return static_cast<float>(1000 * variable + row) + static_cast<float>(column % 8) / 8;
}

inline Tensor ids_tensor(const std::vector<std::int64_t>& ids) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
}
inline Tensor floats_tensor(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(std::move(shape), values);
}
inline std::vector<float> floats_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace cairn::worker
