// MultiWorkerMirroredStrategy: what a program on each of several workers gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
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

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto all = tensor.values<T>();
  return {all.begin(), all.end()};
}
Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

// ---- who is there ----

TEST(MultiWorker, TheChiefComesFirstAndWorkersBehindIt) {
  SocketCluster cluster(3, /*chief=*/true);
  const auto errors = testing::on_threads(3, [&](int rank) {
    MultiWorker strategy(cluster.resolver(rank));
    EXPECT_EQ(strategy.id_in_cluster(), rank);
    EXPECT_EQ(strategy.is_chief(), rank == 0);
    EXPECT_EQ(strategy.num_workers(), 3);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 3);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorker, WithoutAClusterAndAsAnEvaluatorItIsAlone) {
  const ClusterSpec workers{{"worker", {"h1:1", "h2:2"}}};
  for (const auto& resolver :
       {SimpleClusterResolver({}),
        SimpleClusterResolver(workers, {.task_type = "evaluator", .task_id = 0})}) {
    MultiWorker strategy(resolver);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
    EXPECT_TRUE(strategy.is_chief());
    Function step = strategy.function([] { return Array(2.0f); });
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, strategy.run(step)[0]).item<float>(), 2.0f);
  }
}

TEST(MultiWorker, RefusesClustersThatAreNotOfWorkers) {
  const ClusterSpec with_ps{{"worker", {"h1:1", "h2:2"}}, {"ps", {"h3:3"}}};
  const ClusterSpec workers{{"worker", {"h1:1", "h2:2"}}};
  auto refused = [](const ClusterSpec& spec, SimpleClusterOptions task) {
    return message_of([&] { MultiWorker strategy(SimpleClusterResolver(spec, task)); });
  };
  EXPECT_THAT(refused(with_ps, {.task_type = "worker", .task_id = 0}),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("job \"ps\""),
                    HasSubstr("ParameterServerStrategy")));
  EXPECT_THAT(refused(workers, {}), AllOf(HasSubstr("InvalidArgument"), HasSubstr("\"task\"")));
  EXPECT_THAT(refused(workers, {.task_type = "worker", .task_id = 2}),
              HasSubstr("this task is worker 2, and the cluster has 2 of them"));
}

TEST(MultiWorker, AMissingWorkerIsNamedWhenTheTimeIsOver) {
  SocketCluster cluster(2);
  EXPECT_THAT(
      message_of([&] { MultiWorker strategy(cluster.resolver(0), {}, {.start_timeout = 100ms}); }),
      AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("/job:worker/task:1")));
}

// ---- values ----

TEST(MultiWorker, AWorkerHasItsOwnValueAndReducesThoseOfAll) {
  const auto errors = on_workers(3, [](MultiWorker& strategy) {
    auto scope = strategy.scope();
    Function step = strategy.function([] {
      const ReplicaContext& replica = get_replica_context();
      return Array(floats({1.0f, static_cast<float>(replica.replica_id_in_sync_group())}));
    });
    const PerReplica own = strategy.run(step)[0];
    const auto here = strategy.experimental_local_results(own);
    ASSERT_EQ(here.size(), 1u);
    const auto id = static_cast<float>(strategy.id_in_cluster());
    EXPECT_THAT(values_of<float>(here[0]), ElementsAre(1, id));
    EXPECT_THAT(values_of<float>(strategy.reduce(ReduceOp::kSum, own)), ElementsAre(3, 3));
    EXPECT_THAT(values_of<float>(strategy.reduce(ReduceOp::kMean, own)), ElementsAre(1, 1));
    EXPECT_EQ(strategy.reduce(ReduceOp::kMean, own, 0).item<float>(), 1.0f);
    EXPECT_THAT(values_of<float>(strategy.gather(own, 0)), ElementsAre(1, 0, 1, 1, 1, 2));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorker, ValuesAreCombinedWithinACallToo) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    Function step = strategy.function([](Array x) {
      const ReplicaContext& replica = get_replica_context();
      const auto id = static_cast<float>(replica.replica_id_in_sync_group());
      return std::vector<Array>{x * Array(floats({id + 1})),
                                replica.all_reduce(ReduceOp::kMean, Array(floats({id})))};
    });
    Function both = strategy.function([&](Array x) {
      const RunResult own = strategy.run(step, {x});
      return std::vector<Array>{strategy.reduce(ReduceOp::kSum, own[0]), strategy.gather(own[0], 0),
                                strategy.reduce(ReduceOp::kSum, own[1])};
    });
    const RunResult result = strategy.call(both, {10.0f});
    EXPECT_THAT(values_of<float>(result[0].tensor()), ElementsAre(30));
    EXPECT_THAT(values_of<float>(result[1].tensor()), ElementsAre(10, 20));
    EXPECT_THAT(values_of<float>(result[2].tensor()), ElementsAre(1));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorker, DistributedValuesAreMadeForTheReplicasHere) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    const PerReplica made =
        strategy.experimental_distribute_values_from_function([](const ValueContext& context) {
          return Array(static_cast<float>(10 * context.num_replicas_in_sync +
                                          context.replica_id_in_sync_group));
        });
    EXPECT_EQ(strategy.experimental_local_results(made)[0].item<float>(),
              20.0f + static_cast<float>(strategy.id_in_cluster()));
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, made).item<float>(), 41.0f);
  });
  EXPECT_THAT(errors, Each(""));
}

// ---- variables ----

TEST(MultiWorker, InitialValuesAreTheChiefs) {
  std::vector<std::vector<float>> drawn(2);
  auto members = make_thread_group(2);
  const auto errors = testing::on_threads(2, [&](int rank) {
    MultiWorker strategy(std::move(members[static_cast<std::size_t>(rank)]),
                         {.seed = static_cast<std::uint64_t>(rank) + 5});
    const auto own = static_cast<float>(rank);
    Variable given = strategy.create_variable(
        {.name = "given", .shape = {2}, .initializer = Initializer::from(floats({own, own + 7}))});
    Variable random = strategy.create_variable(
        {.name = "random", .shape = {4}, .initializer = Initializer::uniform(-1, 1 + own)});
    EXPECT_THAT(values_of<float>(given.read().eval()), ElementsAre(0, 7));
    drawn[static_cast<std::size_t>(rank)] = values_of<float>(random.read().eval());
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(MultiWorker, WorkersThatMakeDifferentVariablesAreToldSo) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    strategy.create_variable({.name = strategy.is_chief() ? "a" : "b", .shape = {2}});
    Function step = strategy.function(
        [] { return get_replica_context().all_reduce(ReduceOp::kSum, Array(1.0f)); });
    strategy.run(step);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("worker 1 makes the variable \"b\""),
                                 HasSubstr("worker 0 makes \"a\""))));
}

TEST(MultiWorker, ChangesOfAVariableAreCombinedAsItsAggregationSays) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    auto make = [&](const char* name, Aggregation how, Synchronization when) {
      return strategy.create_variable(
          {.name = name, .shape = {}, .aggregation = how, .synchronization = when});
    };
    Variable sum = make("sum", Aggregation::kSum, Synchronization::kOnWrite);
    Variable mean = make("mean", Aggregation::kMean, Synchronization::kOnWrite);
    Variable first = make("first", Aggregation::kOnlyFirstReplica, Synchronization::kOnWrite);
    Variable read = make("read", Aggregation::kSum, Synchronization::kOnRead);
    Function step = strategy.function([&] {
      const Array own(static_cast<float>(get_replica_context().replica_id_in_sync_group() + 1));
      sum.assign(own);
      mean.assign(own);
      first.assign(own);
      read.assign_add(own);
    });
    strategy.run(step);
    EXPECT_EQ(value_of(sum), 3.0f);
    EXPECT_EQ(value_of(mean), 1.5f);
    EXPECT_EQ(value_of(first), 1.0f);
    EXPECT_EQ(value_of(read), 3.0f);
    read.assign(Array(10.0f));
    EXPECT_EQ(value_of(read), 10.0f);
    Function own = strategy.function([&] { return read.read(); });
    EXPECT_EQ(strategy.run(own)[0].item<float>(), 5.0f);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorker, ACopyThatDriftsIsNamed) {
  const auto errors = on_workers(
      2,
      [](MultiWorker& strategy) {
        Variable v =
            strategy.create_variable({.name = "v", .shape = {}, .aggregation = Aggregation::kSum});
        if (!strategy.is_chief()) v.assign(Array(1.0f));  // every worker should have
        Function step = strategy.function([&] { v.assign_add(1.0f); });
        strategy.run(step);
      },
      {.check_replicas = true});
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("worker 1's copy"), HasSubstr("\"v\""))));
}

// ---- data ----

TEST(MultiWorker, EachWorkerTakesItsPieceOfAGlobalBatch) {
  std::vector<std::vector<std::vector<std::int64_t>>> seen(2);
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    auto batches =
        strategy.iterate(strategy.experimental_distribute_dataset(Dataset::range(9).batch(4)));
    Function step =
        strategy.function([](Iterator input) { return input.get_next().features["value"]; });
    auto& own = seen[static_cast<std::size_t>(strategy.id_in_cluster())];
    for (int i = 0; i < 3; ++i)
      own.push_back(values_of<std::int64_t>(strategy.run(step, {batches})[0]));
    EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(seen[0], ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5), ElementsAre(8)));
  EXPECT_THAT(seen[1], ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7), ElementsAre()));
}

TEST(MultiWorker, PipelinesOfDifferentLengthsEndTogether) {
  std::vector<std::vector<std::vector<std::int64_t>>> seen(2);
  const auto errors = on_workers(2, [&](MultiWorker& strategy) {
    auto batches = strategy.iterate(
        strategy.distribute_datasets_from_function([](const InputContext& context) {
          EXPECT_EQ(context.num_input_pipelines, 2);
          EXPECT_EQ(context.num_replicas_in_sync, 2);
          const auto batch = context.get_per_replica_batch_size(4);
          return Dataset::range(context.input_pipeline_id == 0 ? 5 : 2).batch(batch);
        }));
    Function step =
        strategy.function([](Iterator input) { return input.get_next().features["value"]; });
    auto& own = seen[static_cast<std::size_t>(strategy.id_in_cluster())];
    for (int i = 0; i < 3; ++i)
      own.push_back(values_of<std::int64_t>(strategy.run(step, {batches})[0]));
    EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(seen[0], ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(seen[1], ElementsAre(ElementsAre(0, 1), ElementsAre(), ElementsAre()));
}

// ---- failures ----

TEST(MultiWorker, AStepThatFailsOnOneFailsOnAllAndEndsTheGroup) {
  const auto errors = on_workers(2, [](MultiWorker& strategy) {
    Variable v =
        strategy.create_variable({.name = "v", .shape = {}, .aggregation = Aggregation::kSum});
    Function step = strategy.function([&](Array x) { v.assign_add(check_numerics(x, "x")); });
    const float bad = std::numeric_limits<float>::quiet_NaN();
    const auto run = [&] { strategy.run(step, {strategy.is_chief() ? 1.0f : bad}); };
    const std::string first = message_of(run);
    if (strategy.is_chief())
      EXPECT_THAT(first, AllOf(HasSubstr("rank 1 gave up"), HasSubstr("start the program again")));
    else
      EXPECT_THAT(first, Not(HasSubstr("start the program again")));
    EXPECT_THAT(message_of(run), HasSubstr("start the program again"));
    EXPECT_EQ(value_of(v), 0.0f);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(MultiWorker, AWorkerThatLeavesIsNamedToThoseThatNeedIt) {
  SocketCluster cluster(3);
  const auto errors = cluster.run([](MultiWorker& strategy) {
    Function step = strategy.function(
        [] { return get_replica_context().all_reduce(ReduceOp::kSum, Array(1.0f)); });
    strategy.run(step);
    if (strategy.id_in_cluster() == 2) return;
    strategy.run(step);
  });
  EXPECT_EQ(errors[2], "");
  for (int rank : {0, 1})
    EXPECT_THAT(errors[static_cast<std::size_t>(rank)],
                AllOf(HasSubstr("Unavailable"), HasSubstr("/job:worker/task:2"),
                      HasSubstr("start the program again")));
}

}  // namespace
}  // namespace cairn
