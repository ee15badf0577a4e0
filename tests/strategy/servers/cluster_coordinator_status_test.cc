// The status includes the program's own description of itself.
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

TEST(ProgramStatus, IsWhatTheProgramSaidLast) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  const auto status = [&] {
    cluster.run_for(std::chrono::seconds(1));
    return parse_json(coordinator.status_json(), "the status");
  };
  EXPECT_FALSE(status().contains("program"));
  coordinator.set_program_status(R"({"training": {"step": 1}})");
  coordinator.set_program_status(R"({"training": {"step": 2}})");
  EXPECT_EQ(status().at("program").at("training").at("step"), 2);
  EXPECT_THROW(coordinator.set_program_status("{"), InvalidArgumentError);
  EXPECT_EQ(status().at("program").at("training").at("step"), 2);
}

}  // namespace
}  // namespace cairn
