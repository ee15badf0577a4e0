// A caller that waits for a closure that never ran receives the first error, not only the news that
// the closure was cancelled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/log.h"
#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename E>
std::string told(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was raised";
}

// A checkpoint of a table of three columns, and a program that makes one of four after restoring
// it.
class AnotherShape : public ::testing::Test {
 protected:
  AnotherShape() {
    {
      ClusterCoordinator coordinator(cluster.strategy());
      Variable table = make_table(3);
      table.read().eval();
      checkpoint = coordinator.save({.folder = "/checkpoints"});
    }
    cluster.kill_chief();
    cluster.start_chief();
    coordinator.emplace(cluster.strategy());
    coordinator->restore(checkpoint);
  }
  Variable make_table(std::int64_t columns) {
    return cluster.strategy().create_variable({.name = "table", .shape = {10, columns}});
  }

  SimulatedCluster cluster{{.ps = 1, .workers = 1}};
  std::string checkpoint;
  std::optional<ClusterCoordinator> coordinator;
};

TEST_F(AnotherShape, GetTellsTheFirstErrorOfWhatWasCancelled) {
  Variable table = make_table(4);
  Function sum = cluster.strategy().function([&] { return reduce_sum(table.read()); });
  RemoteValue value = coordinator->schedule(sum);
  EXPECT_THAT(told<CancelledError>([&] { value.get(kPatience); }),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("\"table\""), HasSubstr("[10, 4]"),
                    HasSubstr("[10, 3]")));
  EXPECT_THROW(std::rethrow_exception(value.cause()), FailedPreconditionError);
}

TEST_F(AnotherShape, RunAndEagerReadsRaiseTheFirstErrorItself) {
  Variable table = make_table(4);
  Function sum = cluster.strategy().function([&] { return reduce_sum(table.read()); });
  EXPECT_THAT(told<FailedPreconditionError>([&] { cluster.strategy().run(sum); }),
              HasSubstr("[10, 3]"));
  EXPECT_THAT(told<FailedPreconditionError>([&] { table.read().eval(); }), HasSubstr("[10, 3]"));
}

// An error that run() has raised is not raised again by the program's next call.
TEST(FirstCause, OfARunIsToldOnce) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ParameterServerStrategy& strategy = cluster.strategy();
  Variable v = strategy.create_variable({.name = "v", .shape = {}});
  auto batches = strategy.iterate(numbers(1));
  Function step = strategy.function([&](Iterator input) {
    v.assign_add(cast(sum(input.get_next().features["value"]), DType::kFloat32) + 1.0f);
  });
  strategy.run(step, {batches});
  EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
  EXPECT_EQ(v.read().eval().item<float>(), 1.0f);
  EXPECT_THROW(v.gather(Array(std::int64_t{7})).eval(), InvalidArgumentError);
  EXPECT_EQ(v.read().eval().item<float>(), 1.0f);
}

TEST_F(AnotherShape, TheCoordinatorLogsTheFirstError) {
  std::string log;
  log_to([&log](LogLevel level, const std::string& text) {
    if (level == LogLevel::kError) log += text + "\n";
  });
  Variable table = make_table(4);
  Function sum = cluster.strategy().function([&] { return reduce_sum(table.read()); });
  RemoteValue value = coordinator->schedule(sum);
  EXPECT_THROW(value.get(kPatience), CancelledError);
  log_to(nullptr);
  EXPECT_THAT(log, AllOf(HasSubstr("FailedPrecondition"), HasSubstr("[10, 3]")));
}

TEST(FirstCause, OfADatabaseThatIsCutShortNamesTheCheckpointAndThePs) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  std::string checkpoint;
  {
    ClusterCoordinator coordinator(cluster.strategy());
    Variable v = cluster.strategy().create_variable({.name = "v", .shape = {100, 8}});
    v.assign(v.read() + Array(1.0f));
    checkpoint = coordinator.save({.folder = "/checkpoints"});
  }
  cluster.kill_chief();
  const std::string file = checkpoint + "/ps-0-shard-0/rows";
  const std::string whole = cluster.disk().read(file);
  cluster.disk().write_atomically(file, whole.substr(0, whole.size() / 2));
  cluster.start_chief();
  ClusterCoordinator coordinator(cluster.strategy());
  coordinator.restore(checkpoint);
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {100, 8}});
  EXPECT_THAT(told<DataLossError>([&] { v.read().eval(); }),
              AllOf(HasSubstr(checkpoint + "/ps-0-shard-0"), HasSubstr("cairn ckpt verify")));
}

TEST(FirstCause, OfALostPsIsTheDamagedCheckpointThatItWasToBeRebuiltFrom) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {100, 8}});
  v.assign(v.read() + Array(1.0f));
  const std::string file = coordinator.save({.folder = "/checkpoints"}) + "/ps-0-shard-0/rows";
  const std::string whole = cluster.disk().read(file);
  cluster.disk().write_atomically(file, whole.substr(0, whole.size() / 2));
  cluster.kill_ps(0);
  cluster.start_ps(0);
  const Duration before = cluster.reactor().now();
  EXPECT_THAT(told<DataLossError>([&] { v.read().eval(); }),
              HasSubstr(file.substr(0, file.rfind('/'))));
  EXPECT_LT(cluster.reactor().now() - before, EngineOptions().ps_wait / 10);
}

TEST(FirstCause, OfATableThatDoesNotFitTellsHowMuchDoes) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Variable table =
      cluster.strategy().create_variable({.name = "table", .shape = {std::int64_t{1} << 38, 8}});
  Function add = cluster.strategy().function([&] {
    table.scatter_add(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{7})),
                      Array(Tensor::zeros(DType::kFloat32, {1, 8})));
  });
  RemoteValue value = coordinator.schedule(add);
  EXPECT_THAT(
      told<CancelledError>([&] { value.get(kPatience); }),
      AllOf(HasSubstr("ResourceExhausted"), HasSubstr("'table'"), HasSubstr("use more ps")));
  EXPECT_THAT(told<ResourceExhaustedError>([&] { cluster.strategy().run(add); }),
              HasSubstr("use more ps"));
}

TEST(FirstCause, IsNoneWhereTheProgramItselfCancelled) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Function one = cluster.strategy().function([] { return Array(1.0f) + Array(1.0f); });
  cluster.kill_worker(0);
  cluster.run_for(std::chrono::seconds(5));
  RemoteValue value = coordinator.schedule(one);
  coordinator.cancel();
  EXPECT_THAT(told<CancelledError>([&] { value.get(kPatience); }), HasSubstr("by the program"));
  EXPECT_EQ(value.cause(), nullptr);
}

}  // namespace
}  // namespace cairn
