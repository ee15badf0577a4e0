// RestoreStatus: parts that do not match are an error that lists them all, unless a partial restore
// is expected.
#include "coordinator/cluster/restore_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const UpdateRule kAdamRule{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
const UpdateRule kAdagradRule{RuleKind::kAdagrad, {0.1f, 1e-7f}};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const FailedPreconditionError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// A checkpoint of "kept", "renamed" and "wide", updated by Adam, and another program that restores
// it.
class AnotherModel : public ::testing::Test {
 protected:
  AnotherModel() {
    {
      ClusterCoordinator coordinator(cluster.strategy());
      std::vector<Variable> all;
      for (const char* name : {"kept", "renamed", "wide"})
        all.push_back(make(name, {4}, &kAdamRule));
      for (const Variable& variable : all)
        variable.assign(Array(Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4})));
      checkpoint = coordinator.save({.folder = "/checkpoints"});
    }
    cluster.kill_chief();
    cluster.start_chief();
  }
  Variable make(const std::string& name, Shape shape, const UpdateRule* rule) {
    Variable made = cluster.strategy().create_variable({.name = name, .shape = std::move(shape)});
    if (rule != nullptr) cluster.strategy().add_slots(made, *rule);
    return made;
  }
  static std::vector<float> values(const Variable& variable) {
    const Tensor all = variable.read().eval();
    return {all.values<float>().begin(), all.values<float>().end()};
  }

  SimulatedCluster cluster{{.ps = 2, .workers = 1}};
  std::string checkpoint;
};

TEST_F(AnotherModel, AssertConsumedListsAllThatDoesNotMatchAtOnce) {
  RestoreStatus status = Checkpoint(cluster.strategy()).restore(checkpoint);
  make("kept", {4}, &kAdagradRule);
  make("new_name", {4}, &kAdamRule);
  make("wide", {5}, &kAdamRule);
  const std::string text = refusal([&] { status.assert_consumed(); });
  EXPECT_THAT(text, AllOf(HasSubstr(checkpoint), HasSubstr("not in the checkpoint: \"new_name\""),
                          HasSubstr("in the checkpoint alone: \"renamed\"")));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("\"wide\" is float32[5], in the checkpoint float32[4]"),
            HasSubstr(
                "\"kept\" is updated by adagrad (accumulator), in the checkpoint by adam (m, v)")));
  EXPECT_THAT(text, HasSubstr("--partial"));
}

TEST_F(AnotherModel, AssertConsumedHoldsOnceAllIsMadeAlike) {
  RestoreStatus status = Checkpoint(cluster.strategy()).restore(checkpoint);
  EXPECT_THROW(status.assert_consumed(), FailedPreconditionError);  // none is made yet
  for (const char* name : {"kept", "renamed", "wide"}) make(name, {4}, &kAdamRule);
  status.assert_consumed();
}

TEST_F(AnotherModel, AProgramThatOnlyReadsMatchesWithoutItsOptimizer) {
  RestoreStatus status = Checkpoint(cluster.strategy()).restore(checkpoint);
  make("kept", {4}, nullptr);
  status.assert_existing_objects_matched();
  EXPECT_THAT(refusal([&] { status.assert_consumed(); }),
              AllOf(HasSubstr("slots that nothing uses"), HasSubstr("\"renamed\"")));
}

TEST_F(AnotherModel, APartialRestoreTakesWhatFitsAndBeginsTheRestAnew) {
  Checkpoint(cluster.strategy()).restore(checkpoint).expect_partial();
  Variable kept = make("kept", {4}, &kAdamRule), fresh = make("fresh", {2}, nullptr),
           wide = make("wide", {5}, nullptr);
  EXPECT_THAT(values(kept), ::testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(fresh), ::testing::Each(0));
  EXPECT_THAT(values(wide), ::testing::Each(0));
}

TEST_F(AnotherModel, ARestoreThatNobodyAssertsWarnsOfWhatBeginsAnew) {
  std::string log;
  log_to([&log](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) log += text + "\n";
  });
  Checkpoint(cluster.strategy()).restore(checkpoint);
  Variable kept = make("kept", {4}, nullptr), fresh = make("fresh", {2}, nullptr);
  values(fresh);
  log_to(nullptr);
  EXPECT_THAT(log,
              AllOf(HasSubstr("\"fresh\""), HasSubstr(checkpoint), Not(HasSubstr("\"kept\""))));
}

TEST_F(AnotherModel, VariablesOfOtherTypesThatAreThereAlreadyAreAllNamed) {
  make("kept", {3}, nullptr);
  make("wide", {5}, nullptr);
  const std::string text = refusal([&] { Checkpoint(cluster.strategy()).restore(checkpoint); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("\"kept\" is float32[3]"), HasSubstr("\"wide\" is float32[5]")));
}

TEST(Stop, IsRefusedUntilTheProgramLooksForIt) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Engine& engine = cluster.strategy().host().engine();
  EXPECT_THAT(refusal([&] { engine.request_stop(); }), HasSubstr("stop_requested"));
  EXPECT_FALSE(coordinator.stop_requested());
  engine.request_stop();
  EXPECT_TRUE(coordinator.stop_requested());
}

TEST(NewData, BeginsAtItsStartWhileModelAndStepGoOn) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  std::string checkpoint;
  auto train = [&](ClusterCoordinator& coordinator, const Counters& counters,
                   const PerWorkerDatasetHandle& data) {
    Function add = cluster.strategy().function(
        [&counters](Iterator input) { counters.add_one(input.get_next().features["value"]); });
    for (int i = 0; i < 10; ++i) coordinator.schedule(add, {data});
    coordinator.join(kPatience);
  };
  {
    ClusterCoordinator coordinator(cluster.strategy());
    Counters counters(cluster.strategy());
    train(coordinator, counters,
          coordinator.create_shared_dataset(numbers(Counters::kRows), "data"));
    checkpoint = coordinator.save({.folder = "/checkpoints"});
  }
  cluster.kill_chief();
  cluster.start_chief();
  ClusterCoordinator coordinator(cluster.strategy());
  coordinator.restore(checkpoint, {.new_data = true});
  Counters counters(cluster.strategy());
  train(coordinator, counters, coordinator.create_shared_dataset(numbers(Counters::kRows), "data"));
  EXPECT_EQ(coordinator.stats().global_step, 20);
  EXPECT_EQ(counters.value_of_rows()[0], 2.0f);   // read again
  EXPECT_EQ(counters.value_of_rows()[10], 0.0f);  // where the checkpoint's position was
}

}  // namespace
}  // namespace cairn
