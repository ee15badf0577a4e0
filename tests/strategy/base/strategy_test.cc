// The promises that all strategies share: contexts and rules, values, datasets, checkpoints.
#include "strategy/base/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "nn/nn.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/base/several_replicas.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SeveralReplicas;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const FailedPreconditionError& error) {
    return error.what();
  }
  return "no FailedPreconditionError was thrown";
}

// ---- the same under each strategy ----

template <typename S>
struct InOneProcess {
  S on;
  tools::TempFolder temporary;
  Strategy& strategy() { return on; }
  std::string folder() { return temporary.path(); }
};
struct Default {
  tools::TempFolder temporary;
  Strategy& strategy() { return default_strategy(); }
  std::string folder() { return temporary.path(); }
};
struct OnServers {
  SimulatedCluster cluster{{.ps = 2, .workers = 2}};
  Strategy& strategy() { return cluster.strategy(); }
  std::string folder() { return "/checkpoints"; }
};

template <typename Where>
struct AnyStrategy : ::testing::Test {
  Where where;
  Strategy& strategy = where.strategy();
  Variable scalar(float value) {
    return strategy.create_variable(
        {.name = "scalar", .shape = {}, .initializer = Initializer::constant(value)});
  }
};
using Strategies = ::testing::Types<InOneProcess<OneDeviceStrategy>, InOneProcess<MirroredStrategy>,
                                    InOneProcess<CentralStorageStrategy>, Default, OnServers>;
TYPED_TEST_SUITE(AnyStrategy, Strategies);

TYPED_TEST(AnyStrategy, RunsAFunctionInReplicaContext) {
  Strategy& strategy = this->strategy;
  bool cross = true;
  Function step = strategy.function([&] {
    cross = in_cross_replica_context();
    const ReplicaContext& replica = get_replica_context();
    EXPECT_EQ(&get_strategy(), &strategy);
    EXPECT_EQ(&replica.strategy(), &strategy);
    EXPECT_EQ(replica.num_replicas_in_sync(), 1);
    return Array(replica.replica_id_in_sync_group());
  });
  EXPECT_EQ(strategy.run(step)[0].template item<std::int32_t>(), 0);
  EXPECT_FALSE(cross);
}

TYPED_TEST(AnyStrategy, ReducesWithinAFunctionThatItCalls) {
  Strategy& strategy = this->strategy;
  Function replica = strategy.function([](Array x) { return std::vector<Array>{x * 2, x * 3}; });
  Function train = strategy.function([&](Array x) {
    const RunResult both = strategy.run(replica, {x});
    return std::vector<Array>{strategy.reduce(ReduceOp::kSum, both[0], 0),
                              strategy.reduce(ReduceOp::kMean, both[1], 0),
                              strategy.gather(both[0], 0)};
  });
  const RunResult result = strategy.call(train, {Tensor::of<float>({2}, std::vector<float>{1, 3})});
  EXPECT_EQ(result[0].template item<float>(), 8.0f);
  EXPECT_EQ(result[1].template item<float>(), 6.0f);
  EXPECT_THAT(result[2].template values<float>(), ElementsAre(2, 6));
}

TYPED_TEST(AnyStrategy, ReducesValuesAtHand) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(4);
  const Tensor table = Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 6});
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, 2).template item<std::int32_t>(), 2);
  EXPECT_EQ(strategy.reduce(ReduceOp::kMean, v).template item<float>(), 4.0f);
  EXPECT_EQ(strategy.reduce(ReduceOp::kMean, table, {0, 1}).template item<float>(), 3.0f);
  EXPECT_THAT(strategy.reduce(ReduceOp::kSum, table, -1).template values<float>(),
              ElementsAre(3, 9));
  EXPECT_THAT(strategy.reduce(ReduceOp::kSum, table, std::vector<int>{}).template values<float>(),
              ElementsAre(1, 2, 3, 6));
  EXPECT_THROW(strategy.reduce(ReduceOp::kSum, table, 2), InvalidArgumentError);
  EXPECT_THROW(strategy.reduce(ReduceOp::kSum, Array()), InvalidArgumentError);
  EXPECT_THROW(strategy.gather(v, 0), InvalidArgumentError);
  EXPECT_EQ(strategy.experimental_local_results(3).at(0).template item<std::int32_t>(), 3);
  const PerReplica ids = strategy.experimental_distribute_values_from_function(
      [](const ValueContext& context) { return context.replica_id_in_sync_group + 7; });
  EXPECT_FALSE(ids.is_per_replica());
  EXPECT_EQ(ids.template item<std::int32_t>(), 7);
}

TYPED_TEST(AnyStrategy, RefusesCrossReplicaCallsInAReplica) {
  Strategy& strategy = this->strategy;
  Function inner = strategy.function([](Array x) { return x; });
  auto refuses = [&](const std::function<void(const Array&)>& call) {
    Function step = strategy.function([&](Array x) { call(x); });
    return message_of([&] { strategy.run(step, {1.0f}); });
  };
  const auto cure = AllOf(HasSubstr("cross-replica context"), HasSubstr("merge_call"));
  EXPECT_THAT(refuses([&](const Array& x) { strategy.run(inner, {x}); }), cure);
  EXPECT_THAT(refuses([&](const Array& x) { strategy.reduce(ReduceOp::kSum, x); }), cure);
  EXPECT_THAT(refuses([&](const Array& x) { strategy.gather(x, 0); }), cure);
  EXPECT_EQ(strategy.run(inner, {2.0f})[0].template item<float>(), 2.0f);
}

TYPED_TEST(AnyStrategy, CallsAFunctionWithinAReplicaInItsContext) {
  Strategy& strategy = this->strategy;
  Function inner =
      strategy.function([](Array x) { return x + get_replica_context().num_replicas_in_sync(); });
  Function step = strategy.function([&](Array x) { return strategy.call(inner, {x})[0]; });
  EXPECT_EQ(strategy.run(step, {2.0f})[0].template item<float>(), 3.0f);
}

TYPED_TEST(AnyStrategy, MergesInCrossReplicaContext) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(1);
  Function step = strategy.function([&](Array x) {
    const ReplicaContext& replica = get_replica_context();
    Array tripled = replica.merge_call(
        [&](Strategy& own, const PerReplica& a, const PerReplica& b) {
          EXPECT_EQ(&own, &strategy);
          EXPECT_TRUE(in_cross_replica_context());
          EXPECT_EQ(&get_strategy(), &strategy);
          return own.reduce(ReduceOp::kSum, a) + own.reduce(ReduceOp::kMean, b);
        },
        x, x * 2);
    replica.merge_call([&](Strategy&, const PerReplica& value) { v.assign_add(value); }, tripled);
    EXPECT_FALSE(in_cross_replica_context());
    return replica.all_reduce(ReduceOp::kMean, tripled);
  });
  EXPECT_EQ(strategy.run(step, {2.0f})[0].template item<float>(), 6.0f);
  EXPECT_EQ(v.read().eval().template item<float>(), 7.0f);
}

TYPED_TEST(AnyStrategy, RecordsAnAllReduceAsAnEffectOfTheGraph) {
  Strategy& strategy = this->strategy;
  std::string recorded;
  Function step = strategy.function([&](Array x) {
    const ReplicaContext& replica = get_replica_context();
    const auto both = replica.all_reduce(ReduceOp::kSum, std::vector<Array>{x, x * 2});
    recorded = both[1].node()->op->name;
    return both[0] + both[1] + cast(replica.all_reduce(ReduceOp::kMean, 1), DType::kFloat32);
  });
  EXPECT_EQ(strategy.run(step, {2.0f})[0].template item<float>(), 7.0f);
  EXPECT_EQ(recorded, "all_reduce");
}

TYPED_TEST(AnyStrategy, RefusesAReplicasCallsWithinItsMerge) {
  Strategy& strategy = this->strategy;
  auto refuses = [&](const std::function<void(const ReplicaContext&)>& call) {
    Function step = strategy.function([&] {
      const ReplicaContext& replica = get_replica_context();
      replica.merge_call([&](Strategy&) { call(replica); });
    });
    return message_of([&] { strategy.run(step); });
  };
  EXPECT_THAT(refuses([](const ReplicaContext&) { get_replica_context(); }),
              HasSubstr("no replica runs"));
  EXPECT_THAT(refuses([](const ReplicaContext& replica) { replica.merge_call([](Strategy&) {}); }),
              HasSubstr("this is cross-replica context"));
  EXPECT_THAT(
      refuses([](const ReplicaContext& replica) { replica.all_reduce(ReduceOp::kSum, 1.0f); }),
      HasSubstr("this is cross-replica context"));
}

TYPED_TEST(AnyStrategy, NamesTheOutputsOfARun) {
  Function step = this->strategy.function([](Array x) {
    return std::map<std::string, std::pair<Array, Array>>{{"a", {x, x + 1}}, {"b", {x + 2, x + 3}}};
  });
  const RunResult result = this->strategy.run(step, {1.0f});
  EXPECT_EQ(result.get("a/1").template item<float>(), 2.0f);
  EXPECT_EQ(result.get("b/0").template item<float>(), 3.0f);
  EXPECT_THROW(result.get("b/2"), InvalidArgumentError);
}

TYPED_TEST(AnyStrategy, PassesOverADatasetOnce) {
  Strategy& strategy = this->strategy;
  auto dataset = strategy.experimental_distribute_dataset(Dataset::range(4).batch(2));
  auto batches = strategy.iterate(dataset);
  Function step = strategy.function(
      [](Iterator input) { return reduce_sum(input.get_next().features["value"]); });
  EXPECT_EQ(strategy.run(step, {batches})[0].template item<std::int64_t>(), 1);
  EXPECT_EQ(strategy.run(step, {batches})[0].template item<std::int64_t>(), 5);
  EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
}

TYPED_TEST(AnyStrategy, PassesOverADatasetFunctionByEitherName) {
  Strategy& strategy = this->strategy;
  const Strategy::DatasetFunction dataset_fn = [](const InputContext& context) {
    return Dataset::range(8).shard(context).batch(context.get_per_replica_batch_size(4)).repeat();
  };
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  for (const auto& made : {strategy.distribute_datasets_from_function(dataset_fn),
                           strategy.experimental_distribute_datasets_from_function(dataset_fn)})
    EXPECT_EQ(strategy.run(step, {strategy.iterate(made)})[0].tensor().elements(), 4);
}

TYPED_TEST(AnyStrategy, SavesAndRestores) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(1);
  v.assign(3.0f);
  const std::string checkpoint = strategy.save({.folder = this->where.folder()});
  v.assign(5.0f);
  strategy.restore(checkpoint).assert_consumed();
  EXPECT_EQ(v.read().eval().template item<float>(), 3.0f);
}

// ---- scopes ----

TEST(StrategyScope, WithoutOneTheDefaultStrategyHasItsOnlyReplica) {
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  EXPECT_EQ(&get_strategy(), &default_strategy());
  EXPECT_EQ(get_replica_context().replica_id_in_sync_group(), 0);
  EXPECT_EQ(get_replica_context().num_replicas_in_sync(), 1);
  EXPECT_EQ(get_replica_context().all_reduce(ReduceOp::kSum, 2.0f).eval().item<float>(), 2.0f);
  Array merged = get_replica_context().merge_call(
      [](Strategy& strategy, const PerReplica& x) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_FALSE(has_strategy());
        return strategy.reduce(ReduceOp::kSum, x);
      },
      3.0f);
  EXPECT_EQ(merged.eval().item<float>(), 3.0f);
}

TEST(StrategyScope, IsCrossReplicaContextAndOpensAgainWithinItself) {
  OneDeviceStrategy strategy;
  {
    auto outer = strategy.scope();
    auto inner = strategy.scope();
    EXPECT_TRUE(has_strategy());
    EXPECT_TRUE(in_cross_replica_context());
    EXPECT_EQ(&get_strategy(), &strategy);
    EXPECT_THAT(message_of([] { get_replica_context(); }), HasSubstr("cross-replica context"));
  }
  EXPECT_FALSE(has_strategy());
}

TEST(StrategyScope, OfAnotherStrategyIsRefusedWithinIt) {
  OneDeviceStrategy one, another;
  Function step = another.function([] { return Array(1.0f); });
  auto scope = one.scope();
  const auto mixing = HasSubstr("Mixing different tf.distribute.Strategy objects");
  EXPECT_THAT(message_of([&] { auto within = another.scope(); }), mixing);
  EXPECT_THAT(message_of([&] { another.run(step); }), mixing);
  EXPECT_THAT(message_of([&] { another.call(step); }), mixing);
  EXPECT_THAT(message_of([&] { another.reduce(ReduceOp::kSum, 1.0f); }), mixing);
  EXPECT_THAT(message_of([] { auto within = default_strategy().scope(); }),
              HasSubstr("Must not nest"));
}

TEST(StrategyScope, OfTheDefaultStrategyChangesNothing) {
  auto scope = default_strategy().scope();
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  OneDeviceStrategy strategy;
  auto within = strategy.scope();
  EXPECT_EQ(&get_strategy(), &strategy);
}

TEST(StrategyScope, OfAClusterIsThatOfAScheduledFunction) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Function replica = cluster.strategy().function([](Array x) { return x * 2; });
  Function train = cluster.strategy().function([&] {
    EXPECT_TRUE(in_cross_replica_context());
    return cluster.strategy().reduce(ReduceOp::kSum, cluster.strategy().run(replica, {3.0f})[0]);
  });
  EXPECT_EQ(coordinator.schedule(train).get(kPatience).item<float>(), 6.0f);
  OneDeviceStrategy another;
  auto scope = another.scope();
  EXPECT_THAT(message_of([&] { coordinator.schedule(train); }), HasSubstr("Mixing different"));
}

TEST(StrategyScope, AFunctionIsTracedOnceInEachContext) {
  OneDeviceStrategy strategy;
  int traces = 0;
  Function tells = strategy.function([&] {
    ++traces;
    return Array(in_cross_replica_context());
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(strategy.call(tells)[0].item<bool>());
    EXPECT_FALSE(strategy.run(tells)[0].item<bool>());
  }
  EXPECT_EQ(traces, 2);
}

TEST(StrategyScope, ALayerOfTheDefaultStrategyHasOneSetOfVariables) {
  nn::Dense layer({.units = 1});
  const Array one = Tensor::of<float>({1, 1}, std::vector<float>{1});
  const float alone = layer(one).eval().item<float>();
  Function forward = default_strategy().function([&](Array x) { return layer(x); });
  EXPECT_EQ(default_strategy().run(forward, {one})[0].item<float>(), alone);
}

TEST(StrategyScope, AContextOfAnotherStrategysReplicaIsRefused) {
  OneDeviceStrategy one, another;
  const ReplicaContext* kept = nullptr;
  Function keeps = one.function([&] { kept = &get_replica_context(); });
  one.run(keeps);
  Function uses = another.function([&] { return kept->all_reduce(ReduceOp::kSum, 1.0f); });
  EXPECT_THAT(message_of([&] { another.run(uses); }), HasSubstr("mismatching tf.distribute"));
}

// ---- several replicas ----

TEST(SeveralReplicasRun, EachWithItsPartOfAPerReplicaValue) {
  SeveralReplicas strategy(3);
  const PerReplica tens =
      strategy.experimental_distribute_values_from_function([](const ValueContext& context) {
        EXPECT_EQ(context.num_replicas_in_sync, 3);
        return context.replica_id_in_sync_group * 10;
      });
  ASSERT_TRUE(tens.is_per_replica());
  Function step = strategy.function([](Array own, Array same) {
    return own + same + get_replica_context().replica_id_in_sync_group();
  });
  const RunResult result = strategy.run(step, {tens, 100});
  std::vector<std::int32_t> got;
  for (const RunValue& each : strategy.experimental_local_results(result[0]))
    got.push_back(each.item<std::int32_t>());
  EXPECT_THAT(got, ElementsAre(100, 111, 122));
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, result[0]).item<std::int32_t>(), 333);
}

TEST(SeveralReplicasRun, WithinAFunctionRecordsEach) {
  SeveralReplicas strategy(2);
  Variable v = strategy.create_variable({.name = "v"});
  Function replica = strategy.function([&](Array x) {
    v.assign_add(x);
    return x + cast(get_replica_context().replica_id_in_sync_group(), DType::kFloat32);
  });
  Function train = strategy.function(
      [&](Array x) { return strategy.reduce(ReduceOp::kMean, strategy.run(replica, {x})[0]); });
  EXPECT_EQ(strategy.call(train, {4.0f})[0].item<float>(), 4.5f);
  EXPECT_EQ(v.read().eval().item<float>(), 8.0f);
}

TEST(SeveralReplicasRun, GivesValuesThatAreNoArrays) {
  SeveralReplicas strategy(2);
  Function step = strategy.function([](Array x) { return x; });
  const RunResult result = strategy.run(step, {1.0f});
  EXPECT_THAT(message_of([&] { result[0].tensor(); }), HasSubstr("one value per replica"));
  EXPECT_THROW(result[0] + 1.0f, InvalidArgumentError);
  EXPECT_THROW(strategy.call(step, {result[0]}), InvalidArgumentError);
  EXPECT_THROW(result[0].of_replica(2), InvalidArgumentError);
  OneDeviceStrategy alone;
  EXPECT_THROW(alone.reduce(ReduceOp::kSum, result[0]), InvalidArgumentError);
}

TEST(SeveralReplicasRun, RefusesAReplicaThatReturnsMoreThanAnother) {
  SeveralReplicas strategy(2);
  Function step = strategy.function([] {
    const auto id = static_cast<std::size_t>(get_replica_context().replica_id_in_sync_group());
    return std::vector<Array>(id + 1, Array(1.0f));
  });
  EXPECT_THROW(strategy.run(step), InvalidArgumentError);
}

TEST(SeveralReplicasRun, CannotMeetWhileTheyRunInTurn) {
  SeveralReplicas strategy(2);
  Function sums = strategy.function([] { get_replica_context().all_reduce(ReduceOp::kSum, 1.0f); });
  Function merges = strategy.function([] { get_replica_context().merge_call([](Strategy&) {}); });
  EXPECT_THROW(strategy.run(sums), UnimplementedError);
  EXPECT_THROW(strategy.run(merges), UnimplementedError);
}

}  // namespace
}  // namespace cairn
