// MultiWorkerMirroredStrategy with several replicas in each worker: how they are counted, what each
// gets, and how a failure of one ends all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::on_workers;
using testing::SocketCluster;
using testing::value_of;
using MultiWorker = MultiWorkerMirroredStrategy;

const MultiWorkerOptions kTwoDevices = {.check_replicas = true, .devices = testing::devices(2)};

// ---- who is there ----

TEST(MultiWorkerDevices, EachIsAReplicaNumberedWorkerByWorker) {
  const auto errors = on_workers(
      3,
      [](MultiWorker& strategy) {
        EXPECT_EQ(strategy.num_workers(), 3);
        EXPECT_EQ(strategy.num_replicas_in_sync(), 6);
        EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre("cpu:0", "cpu:1"));
        Function step = strategy.function([] {
          const ReplicaContext& replica = get_replica_context();
          return Array(Tensor::of<std::int64_t>(
              {2}, std::vector<std::int64_t>{replica.replica_id_in_sync_group(),
                                             replica.num_replicas_in_sync()}));
        });
        const auto here = strategy.experimental_local_results(strategy.run(step)[0]);
        ASSERT_EQ(here.size(), 2u);
        for (int i = 0; i < 2; ++i)
          EXPECT_THAT(here[static_cast<std::size_t>(i)].values<std::int64_t>(),
                      ElementsAre(2 * strategy.id_in_cluster() + i, 6));
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorkerDevices, WorkersWithDifferentNumbersOfThemAreAllToldWhich) {
  auto members = make_thread_group(3, std::chrono::minutes(1));
  const auto errors = testing::on_threads(3, [&](int rank) {
    MultiWorker strategy(std::move(members[static_cast<std::size_t>(rank)]),
                         {.devices = testing::devices(rank == 2 ? 3 : 1)});
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("InvalidArgument"), HasSubstr("worker 0 has 1 device,"),
                                 HasSubstr("worker 2 has 3"))));
}

TEST(MultiWorkerDevices, OneThatThereIsNotIsRefusedBeforeAnybodyIsWaitedFor) {
  SocketCluster cluster(2);
  EXPECT_THROW(MultiWorker(cluster.resolver(0), {}, {.devices = {"gpu:99"}}), NotFoundError);
  EXPECT_THROW(MultiWorker(cluster.resolver(0), {}, {.devices = {"cpu:0", "/cpu:0"}}),
               InvalidArgumentError);
}

// The values that a program sees with two replicas.
std::vector<float> seen_by(Strategy& strategy) {
  auto scope = strategy.scope();
  Variable v = strategy.create_variable({.name = "v",
                                         .shape = {},
                                         .initializer = Initializer::uniform(0, 1),
                                         .aggregation = Aggregation::kMean});
  auto batches =
      strategy.iterate(strategy.experimental_distribute_dataset(Dataset::range(6).batch(4)));
  auto in_turn = strategy.iterate(strategy.distribute_datasets_from_function(
      [](const InputContext&) { return Dataset::range(6).batch(2); }));
  Function step = strategy.function([&](Iterator cut, Iterator turn) {
    const Array x = cast(cut.get_next().features["value"], DType::kFloat32);
    const Array y = cast(turn.get_next().features["value"], DType::kFloat32);
    v.assign_add(get_replica_context().all_reduce(ReduceOp::kSum, sum(x)) * random_uniform({}));
    return std::vector<Array>{sum(x), sum(y), v.read(), Array(1.0f)};
  });
  std::vector<float> seen;
  for (int i = 0; i < 2; ++i) {
    const RunResult result = strategy.run(step, {batches, in_turn});
    for (const PerReplica& output : {result[0], result[1], result[2], result[3]})
      for (const RunValue& each : strategy.experimental_local_results(output))
        seen.push_back(each.item<float>());
  }
  seen.push_back(value_of(v));
  return seen;
}

TEST(MultiWorkerDevices, WithoutOtherWorkersItIsAMirroredStrategy) {
  MirroredStrategy mirrored({"cpu:0", "cpu:1"}, {.seed = 3});
  MultiWorker alone(SimpleClusterResolver({}), {}, {.seed = 3, .devices = {"cpu:0", "cpu:1"}});
  EXPECT_EQ(alone.num_workers(), 1);
  EXPECT_EQ(alone.num_replicas_in_sync(), 2);
  EXPECT_EQ(seen_by(alone), seen_by(mirrored));
  Function fails = alone.function([](Array x) { return check_numerics(x, "x"); });
  const float bad = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(alone.run(fails, {bad}), InvalidArgumentError);
  EXPECT_EQ(alone.reduce(ReduceOp::kSum, alone.run(fails, {1.0f})[0]).item<float>(), 2.0f);
}

// ---- values ----

TEST(MultiWorkerDevices, ValuesOfAllReplicasAreReducedAndGatheredInTheirOrder) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        auto scope = strategy.scope();
        Function step = strategy.function([](Array x) {
          const ReplicaContext& replica = get_replica_context();
          const auto id = static_cast<float>(replica.replica_id_in_sync_group());
          const Array own = x * Array(Tensor::of<float>({1}, std::vector<float>{id + 1}));
          return std::vector<Array>{own, replica.all_reduce(ReduceOp::kMean, own)};
        });
        const RunResult own = strategy.run(step, {10.0f});
        EXPECT_EQ(strategy.reduce(ReduceOp::kSum, own[0]).item<float>(), 100.0f);
        EXPECT_EQ(strategy.reduce(ReduceOp::kMean, own[0]).item<float>(), 25.0f);
        EXPECT_EQ(strategy.reduce(ReduceOp::kMean, own[0], 0).item<float>(), 25.0f);
        EXPECT_THAT(strategy.gather(own[0], 0).values<float>(), ElementsAre(10, 20, 30, 40));
        for (const RunValue& mean : strategy.experimental_local_results(own[1]))
          EXPECT_THAT(mean.values<float>(), ElementsAre(25));
        Function both = strategy.function([&](Array x) {
          const RunResult inner = strategy.run(step, {x});
          return std::vector<Array>{strategy.reduce(ReduceOp::kSum, inner[0]),
                                    strategy.gather(inner[0], 0)};
        });
        const RunResult called = strategy.call(both, {1.0f});
        EXPECT_THAT(called[0].values<float>(), ElementsAre(10));
        EXPECT_THAT(called[1].values<float>(), ElementsAre(1, 2, 3, 4));
        const PerReplica made =
            strategy.experimental_distribute_values_from_function([](const ValueContext& context) {
              return Array(static_cast<float>(context.replica_id_in_sync_group));
            });
        EXPECT_EQ(strategy.reduce(ReduceOp::kSum, made).item<float>(), 6.0f);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

// One of two workers has the same constant on all its replicas, and the other has not.
TEST(MultiWorkerDevices, AConstantOfOneWorkerIsReducedWithTheOthersValues) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Function step = strategy.function([] {
          return Array(get_replica_context().replica_id_in_sync_group() == 0 ? 4.0f : 0.0f);
        });
        const PerReplica own = strategy.run(step)[0];
        EXPECT_EQ(strategy.reduce(ReduceOp::kSum, own).item<float>(), 4.0f);
        EXPECT_EQ(strategy.reduce(ReduceOp::kMean, own).item<float>(), 1.0f);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorkerDevices, ShapesThatDifferWithinAWorkerEndAllWorkers) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Function step = strategy.function([] {
          const bool last = get_replica_context().replica_id_in_sync_group() == 3;
          return Array(Tensor::zeros(DType::kFloat32, {last ? 2 : 1}));
        });
        strategy.reduce(ReduceOp::kSum, strategy.run(step)[0]);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(HasSubstr("the values of all replicas must have one shape")));
}

// ---- variables ----

TEST(MultiWorkerDevices, ChangesOfAVariableAreCombinedOverAllReplicas) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        auto make = [&](const char* name, Aggregation how, Synchronization when) {
          return strategy.create_variable(
              {.name = name, .shape = {}, .aggregation = how, .synchronization = when});
        };
        Variable total = make("sum", Aggregation::kSum, Synchronization::kOnWrite);
        Variable mean = make("mean", Aggregation::kMean, Synchronization::kOnWrite);
        Variable first = make("first", Aggregation::kOnlyFirstReplica, Synchronization::kOnWrite);
        Variable read = make("read", Aggregation::kSum, Synchronization::kOnRead);
        Variable rows = strategy.create_variable(
            {.name = "rows", .shape = {4, 2}, .aggregation = Aggregation::kSum});
        Function step = strategy.function([&] {
          const int id = get_replica_context().replica_id_in_sync_group();
          const Array own(static_cast<float>(id + 1));
          total.assign(own);
          mean.assign(own);
          first.assign(own);
          read.assign_add(own);
          rows.scatter_add(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{id / 3})),
                           Array(Tensor::of<float>({1, 2}, std::vector<float>{1, 2})));
        });
        strategy.run(step);
        EXPECT_EQ(value_of(total), 10.0f);
        EXPECT_EQ(value_of(mean), 2.5f);
        EXPECT_EQ(value_of(first), 1.0f);
        EXPECT_EQ(value_of(read), 10.0f);
        const Tensor all = rows.read().eval();
        EXPECT_THAT(all.values<float>(), ElementsAre(3, 6, 1, 2, 0, 0, 0, 0));
        read.assign(Array(20.0f));
        EXPECT_EQ(value_of(read), 20.0f);
        Function own = strategy.function([&] { return read.read(); });
        for (const RunValue& each : strategy.experimental_local_results(strategy.run(own)[0]))
          EXPECT_EQ(each.item<float>(), 5.0f);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorkerDevices, VariablesThatAFunctionMakesAreMadeOnceForAllReplicas) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Variable made;
        Function step = strategy.function([&] {
          if (!made.defined())
            made = strategy.create_variable({.name = "made",
                                             .shape = {2},
                                             .initializer = Initializer::uniform(0, 1),
                                             .aggregation = Aggregation::kMean});
          return sum(made.read());
        });
        const RunValue all = strategy.reduce(ReduceOp::kSum, strategy.run(step)[0]);
        EXPECT_NEAR(all.item<float>(), 4 * sum(made.read()).eval().item<float>(), 1e-6f);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorkerDevices, ACopyThatDriftsWithinAWorkerIsNamedAndEndsAll) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Variable v =
            strategy.create_variable({.name = "v", .shape = {}, .aggregation = Aggregation::kSum});
        if (!strategy.is_chief()) {
          std::vector<Update> updates{
              {.variable = 0, .rule = {RuleKind::kAssign, {}}, .value = Tensor::scalar(7.0f)}};
          strategy.store_of(1).push({}, updates);
        }
        Function step = strategy.function([&] { v.assign_add(1.0f); });
        strategy.run(step);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(HasSubstr("replica 3's copy of the variable \"v\" differs from replica "
                                     "2's")));
}

// ---- data ----

using Seen = std::vector<std::vector<std::int64_t>>;  // by replica here, one batch after another

Seen take(MultiWorker& strategy, const std::shared_ptr<const IteratorSource>& batches, int steps) {
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  Seen seen(2);
  for (int i = 0; i < steps; ++i) {
    const auto here = strategy.experimental_local_results(strategy.run(step, {batches})[0]);
    for (std::size_t replica = 0; replica < 2; ++replica) {
      for (const std::int64_t value : here[replica].values<std::int64_t>())
        seen[replica].push_back(value);
      seen[replica].push_back(-1);
    }
  }
  EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
  return seen;
}

// Piece j is worker j mod 2's.
TEST(MultiWorkerDevices, TakeThePiecesOfAGlobalBatchThatTheReferenceGivesThem) {
  std::vector<Seen> seen(2);
  const auto errors = on_workers(
      2,
      [&](MultiWorker& strategy) {
        seen[static_cast<std::size_t>(strategy.id_in_cluster())] = take(
            strategy,
            strategy.iterate(strategy.experimental_distribute_dataset(Dataset::range(11).batch(8))),
            2);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(seen[0][0], ElementsAre(0, 1, -1, 8, -1));
  EXPECT_THAT(seen[1][0], ElementsAre(2, 3, -1, 9, -1));
  EXPECT_THAT(seen[0][1], ElementsAre(4, 5, -1, 10, -1));
  EXPECT_THAT(seen[1][1], ElementsAre(6, 7, -1, -1));
}

TEST(MultiWorkerDevices, TakeTheBatchesOfTheirWorkersPipelineInTurn) {
  std::vector<Seen> seen(2);
  const auto errors = on_workers(
      2,
      [&](MultiWorker& strategy) {
        const auto batches = strategy.iterate(
            strategy.distribute_datasets_from_function([](const InputContext& context) {
              EXPECT_EQ(context.num_input_pipelines, 2);
              EXPECT_EQ(context.num_replicas_in_sync, 4);
              EXPECT_EQ(context.get_per_replica_batch_size(8), 2);
              return Dataset::range(context.input_pipeline_id == 0 ? 7 : 2).batch(2);
            }));
        seen[static_cast<std::size_t>(strategy.id_in_cluster())] = take(strategy, batches, 2);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(seen[0][0], ElementsAre(0, 1, -1, 4, 5, -1));
  EXPECT_THAT(seen[0][1], ElementsAre(2, 3, -1, 6, -1));
  EXPECT_THAT(seen[1][0], ElementsAre(0, 1, -1, -1));
  EXPECT_THAT(seen[1][1], ElementsAre(-1, -1));
}

// ---- counts ----

TEST(MultiWorkerDevices, EachReplicaCountsItsOwnCalls) {
  const auto errors =
      on_workers(2,
                 [](MultiWorker& strategy) {
                   Function step = strategy.function([] {
                     return get_replica_context().all_reduce(
                         ReduceOp::kSum, Array(Tensor::zeros(DType::kFloat32, {100})));
                   });
                   const auto before = strategy.collective_counts();
                   strategy.run(step);
                   const auto after = strategy.collective_counts();
                   ASSERT_EQ(after.size(), 2u);
                   for (std::size_t i = 0; i < 2; ++i) {
                     EXPECT_GE(after[i].calls, before[i].calls + 1);
                     EXPECT_GE(after[i].bytes, before[i].bytes + 400);
                     EXPECT_GE(after[i].held_seconds, after[i].waited_seconds);
                   }
                 },
                 {.devices = testing::devices(2)});
  EXPECT_THAT(errors, Each(""));
}

// ---- failures ----

TEST(MultiWorkerDevices, AStepThatFailsOnOneReplicaFailsOnAllWorkersAndEndsTheGroup) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Variable v =
            strategy.create_variable({.name = "v", .shape = {}, .aggregation = Aggregation::kSum});
        Function step = strategy.function([&](Array x) {
          const bool bad = get_replica_context().replica_id_in_sync_group() == 3;
          const float by = bad ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
          v.assign_add(check_numerics(x * Array(by), "x"));
        });
        const auto run = [&] { strategy.run(step, {1.0f}); };
        const std::string first = message_of(run);
        if (strategy.is_chief())
          EXPECT_THAT(first, AllOf(HasSubstr("rank 1 gave up: its replica 3: "),
                                   HasSubstr("start the program again")));
        else
          EXPECT_THAT(first, AllOf(HasSubstr("InvalidArgument"), Not(HasSubstr("gave up"))));
        EXPECT_THAT(message_of(run),
                    AllOf(HasSubstr("Unavailable"), HasSubstr("start the program again")));
        EXPECT_EQ(value_of(v), 0.0f);
      },
      kTwoDevices);
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorkerDevices, AWorkerThatLeavesIsNamedToAllReplicasThatNeedIt) {
  SocketCluster cluster(3);
  const auto errors = cluster.run(
      [](MultiWorker& strategy) {
        Function step = strategy.function(
            [] { return get_replica_context().all_reduce(ReduceOp::kSum, Array(1.0f)); });
        strategy.run(step);
        if (strategy.id_in_cluster() == 2) return;
        try {
          strategy.run(step);
        } catch (const UnavailableError& error) {
          EXPECT_EQ(error.task(), "/job:worker/task:2");
          throw;
        }
      },
      kTwoDevices);
  EXPECT_EQ(errors[2], "");
  for (const std::size_t rank : {0, 1})
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("Unavailable"), HasSubstr("/job:worker/task:2"),
                                    HasSubstr("start the program again")));
}

}  // namespace
}  // namespace cairn
