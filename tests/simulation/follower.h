// A subscriber of the simulated cluster's ps, as a server or a program of one's own is one. It is
// slow at times, stops for a while, and begins again as another process. Its copy must be equal to
// the values on the ps once nothing changes any more.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "serving/follow/row_subscriber.h"
#include "testing/simulated_cluster.h"
#include "tests/serving/follow/row_copy.h"
#include "tests/simulation/program.h"

namespace cairn::simulation {

class Follower {
 public:
  static constexpr const char* kHost = "server";

  // `cluster` outlives it.
  Follower(SimulatedCluster& cluster, const Scenario& scenario);
  ~Follower();

  // Lets time pass until all has come, and compares. Empty: the copy is equal to `values`.
  std::string judge(const Values& values);

 private:
  void begin();
  void take();
  void go_on();
  std::string difference(const Values& values);
  static std::string difference(const std::string& name, const RowCounts& wanted,
                                const serving::RowCopy::Rows& rows);

  SimulatedCluster& cluster_;
  const Scenario scenario_;
  Random random_;
  std::uint64_t number_ = 1;
  bool resting_ = false, judging_ = false;
  std::unique_ptr<serving::RowSubscriber> subscriber_;
  serving::RowCopy copy_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::simulation
