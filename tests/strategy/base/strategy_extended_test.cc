// The answers of StrategyExtended, under each strategy.
#include "strategy/base/strategy_extended.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::logical_cpus;

template <typename E>
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "it was not refused so";
}

Variable scalar_of(Strategy& strategy, float value) {
  return strategy.create_variable({.name = "scalar",
                                   .shape = {},
                                   .initializer = Initializer::constant(value),
                                   .aggregation = Aggregation::kSum});
}

float value_of(const Variable& variable) { return variable.read().eval().item<float>(); }

// ---- where things are ----

TEST(StrategyExtended, NamesTheDevicesOfReplicasAndOfVariables) {
  OneDeviceStrategy one;
  EXPECT_THAT(one.extended().worker_devices(), ElementsAre("cpu:0"));
  EXPECT_THAT(one.extended().parameter_devices(), ElementsAre("cpu:0"));

  MirroredStrategy mirrored({"cpu:2", "/device:CPU:5"});
  EXPECT_THAT(mirrored.extended().worker_devices(), ElementsAre("cpu:2", "cpu:5"));
  EXPECT_THAT(mirrored.extended().parameter_devices(), ElementsAre("cpu:2", "cpu:5"));

  CentralStorageStrategy central(logical_cpus(2));
  EXPECT_THAT(central.extended().worker_devices(), ElementsAre("cpu:0", "cpu:1"));
  EXPECT_THAT(central.extended().parameter_devices(), ElementsAre("cpu:0"));
  CentralStorageStrategy only({"cpu:3"});
  EXPECT_THAT(only.extended().parameter_devices(), ElementsAre("cpu:3"));
  CentralStorageStrategy elsewhere(logical_cpus(2), "/CPU:7");
  EXPECT_THAT(elsewhere.extended().parameter_devices(), ElementsAre("cpu:7"));
  EXPECT_THROW(CentralStorageStrategy(logical_cpus(2), "gpu:0"), InvalidArgumentError);

  SimulatedCluster cluster({.ps = 1, .workers = 2});
  const StrategyExtended extended = cluster.strategy().extended();
  EXPECT_THAT(extended.worker_devices(),
              ElementsAre("/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"));
  EXPECT_THAT(extended.parameter_devices(), ElementsAre("/job:ps/task:0/cpu:0"));
  EXPECT_FALSE(extended.experimental_require_static_shapes());
}

TEST(StrategyExtended, KnowsTheVariablesOfItsStrategyWhateverTheirNames) {
  OneDeviceStrategy one;
  MirroredStrategy two(logical_cpus(2));
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  Strategy* const all[] = {&one, &two, &cluster.strategy(), &default_strategy()};
  for (Strategy* maker : all) {
    const Variable made = scalar_of(*maker, 1);
    for (Strategy* asked : all)
      EXPECT_EQ(asked->extended().variable_created_in_scope(made), asked == maker);
  }
  EXPECT_FALSE(one.extended().variable_created_in_scope(Variable()));
}

TEST(StrategyExtended, ColocatesVariablesOnOneShardAndRefusesThoseOfOthers) {
  SimulatedCluster cluster({.ps = 3, .workers = 1});
  const auto shard_of = [&](const Variable& variable) {
    return cluster.strategy()
        .host()
        .engine()
        .registry()
        .layout()
        ->find(variable.name())
        ->parts.at(0)
        .shard;
  };
  const Variable first = scalar_of(cluster.strategy(), 1);
  {
    auto beside = cluster.strategy().extended().colocate_vars_with(first);
    EXPECT_EQ(shard_of(scalar_of(cluster.strategy(), 1)), shard_of(first));
  }
  EXPECT_NE(shard_of(scalar_of(cluster.strategy(), 1)), shard_of(first));

  MirroredStrategy two(logical_cpus(2));
  EXPECT_THAT(refusal<InvalidArgumentError>(
                  [&] { const auto none = two.extended().colocate_vars_with(first); }),
              AllOf(HasSubstr("\"scalar\""), HasSubstr("made in its scope")));
  auto beside = two.extended().colocate_vars_with(scalar_of(two, 1));
  EXPECT_EQ(value_of(scalar_of(two, 5)), 5.0f);  // one memory: nothing to tell apart
}

// ---- values ----

template <typename Kind>
struct ExtendedInSync : testing::ThreeInSync<Kind> {};
TYPED_TEST_SUITE(ExtendedInSync, testing::InSyncKinds);

TYPED_TEST(ExtendedInSync, ReducesToVariablesAndDevices) {
  Strategy& strategy = this->strategy;
  const Variable v = this->scalar(1);
  const StrategyExtended extended = strategy.extended();
  const PerReplica values(std::vector<Array>{1.0f, 2.0f, 6.0f});
  EXPECT_EQ(extended.reduce_to(ReduceOp::kSum, values, v).template item<float>(), 9.0f);
  EXPECT_EQ(extended.reduce_to(ReduceOp::kMean, values, values).template item<float>(), 3.0f);
  EXPECT_EQ(extended.reduce_to(ReduceOp::kSum, values, "/cpu:9").template item<float>(), 9.0f);
  const auto both = extended.batch_reduce_to(
      ReduceOp::kSum, {{values, v}, {values, std::vector<std::string>{"cpu:0", "cpu:2"}}});
  EXPECT_EQ(both.at(1).template item<float>(), 9.0f);
  EXPECT_EQ(both.size(), 2u);

  OneDeviceStrategy other;
  EXPECT_THAT(refusal<InvalidArgumentError>(
                  [&] { extended.reduce_to(ReduceOp::kSum, values, scalar_of(other, 1)); }),
              HasSubstr("not made by this strategy"));
  EXPECT_THAT(
      refusal<InvalidArgumentError>([&] { extended.reduce_to(ReduceOp::kSum, values, "tpu:0"); }),
      HasSubstr("\"tpu:0\""));
  EXPECT_THAT(refusal<NotFoundError>([&] { extended.reduce_to(ReduceOp::kSum, values, "gpu:99"); }),
              HasSubstr("\"gpu:99\""));
  EXPECT_THROW(extended.reduce_to(ReduceOp::kSum, 2.0f, v), InvalidArgumentError);  // as reduce()
}

// The way in which the reference's own optimizers update variables.
TYPED_TEST(ExtendedInSync, AMergeUpdatesAVariableByWhatItHasReduced) {
  Strategy& strategy = this->strategy;
  const Variable v = this->scalar(100);
  Function step = strategy.function([&](Array gradient) {
    return get_replica_context().merge_call(
        [&](Strategy& own, const PerReplica& gradients) {
          const RunValue sum = own.extended().reduce_to(ReduceOp::kSum, gradients, v);
          return own.extended().update(
              v,
              [](const Variable& variable, const Array& g, const Array& rate) {
                variable.assign_sub(g * rate);
                return variable.read();
              },
              sum, 2.0f);
        },
        gradient);
  });
  const PerReplica gradients(std::vector<Array>{1.0f, 2.0f, 6.0f});
  const RunResult result = strategy.run(step, {gradients});
  for (const RunValue& own : strategy.experimental_local_results(result[0]))
    EXPECT_EQ(own.template item<float>(), 82.0f);
  EXPECT_EQ(this->value_of(v), 82.0f);
}

TYPED_TEST(ExtendedInSync, UpdatesAllCopiesAtOnceOutsideOfAFunction) {
  Strategy& strategy = this->strategy;
  const Variable v = this->scalar(1);
  strategy.extended().update(v, [](const Variable& variable) { variable.assign(7.0f); });
  Function read = strategy.function([&] { return v.read() + 0.0f; });
  for (const RunValue& own : strategy.experimental_local_results(strategy.run(read)[0]))
    EXPECT_EQ(own.template item<float>(), 7.0f);
}

TYPED_TEST(ExtendedInSync, RefusesAnUpdateOfWhichNoCopyCouldTellWhatItIs) {
  Strategy& strategy = this->strategy;
  const Variable v = this->scalar(1);
  const auto assign = [](const Variable& variable, const Array& x) { variable.assign(x); };
  const PerReplica values(std::vector<Array>{1.0f, 2.0f, 6.0f});
  EXPECT_THAT(
      refusal<InvalidArgumentError>([&] { strategy.extended().update(v, assign, values); }),
      AllOf(HasSubstr("argument 0"), HasSubstr("\"scalar\""), HasSubstr("reduce it first")));

  OneDeviceStrategy other;
  const Variable foreign = scalar_of(other, 1);
  EXPECT_THAT(
      refusal<InvalidArgumentError>([&] { strategy.extended().update(foreign, assign, 1.0f); }),
      HasSubstr("not made by this strategy"));

  Function step = strategy.function([&] { strategy.extended().update(v, assign, 1.0f); });
  EXPECT_THAT(refusal<FailedPreconditionError>([&] { strategy.run(step); }),
              AllOf(HasSubstr("extended().update()"), HasSubstr("merge_call")));
  EXPECT_EQ(this->value_of(v), 1.0f);
}

TEST(StrategyExtended, UpdatesOnParameterServers) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  Strategy& strategy = cluster.strategy();
  const Variable v = scalar_of(strategy, 3);
  Function step = strategy.function([&](Array x) {
    get_replica_context().merge_call(
        [&](Strategy& own, const PerReplica& value) {
          own.extended().update(
              v, [](const Variable& variable, const Array& y) { variable.assign_add(y); },
              own.extended().reduce_to(ReduceOp::kSum, value, v));
        },
        x);
  });
  strategy.run(step, {4.0f});
  EXPECT_EQ(value_of(v), 7.0f);
}

}  // namespace
}  // namespace cairn
