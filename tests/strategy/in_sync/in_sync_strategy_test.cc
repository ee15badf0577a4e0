// Several replicas in one process, as a program sees them: contexts and values, where they meet,
// how data is dealt out, and the outcome of a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/strategy/in_sync_kinds.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::logical_cpus;

template <typename E = Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no such error was thrown";
}

Array replica_id() { return get_replica_context().replica_id_in_sync_group(); }

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> floats_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

// The ids of each replica.
std::vector<std::vector<std::int64_t>> ids_of(Strategy& strategy, const PerReplica& value) {
  std::vector<std::vector<std::int64_t>> all;
  for (const RunValue& own : strategy.experimental_local_results(value)) {
    const auto ids = own.values<std::int64_t>();
    all.emplace_back(ids.begin(), ids.end());
  }
  return all;
}

template <typename Kind>
struct InSync : testing::ThreeInSync<Kind> {};
TYPED_TEST_SUITE(InSync, testing::InSyncKinds);

// ---- replicas ----

TYPED_TEST(InSync, RunsAFunctionOnEveryReplicaInItsContext) {
  Strategy& strategy = this->strategy;
  Function step = strategy.function([&](Array own, Array all) {
    EXPECT_EQ(&get_strategy(), &strategy);
    EXPECT_EQ(get_replica_context().num_replicas_in_sync(), 3);
    return own * 10 + all + replica_id();
  });
  const PerReplica own(std::vector<Array>{1, 2, 3});
  const RunResult result = strategy.run(step, {own, 100});
  std::vector<std::int32_t> values;
  for (const RunValue& each : strategy.experimental_local_results(result[0]))
    values.push_back(each.template item<std::int32_t>());
  EXPECT_THAT(values, ElementsAre(110, 121, 132));
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, result[0]).template item<std::int32_t>(), 363);
}

TYPED_TEST(InSync, AConstantOutputIsBare) {
  Function step = this->strategy.function([] {
    return std::vector<Array>{3, replica_id(), replica_id() + 0};
  });
  const RunResult result = this->strategy.run(step);
  EXPECT_FALSE(result[0].is_per_replica());
  EXPECT_EQ(result[0].template item<std::int32_t>(), 3);
  EXPECT_TRUE(result[1].is_per_replica());
  EXPECT_TRUE(result[2].is_per_replica());
}

TYPED_TEST(InSync, ReducesAndGathersWithinAFunctionThatItCalls) {
  Strategy& strategy = this->strategy;
  Function replica = strategy.function([](Array x) {
    const Array own = x * cast(replica_id() + 1, DType::kFloat32);
    return std::vector<Array>{own, replica_id()};
  });
  Function train = strategy.function([&](Array x) {
    EXPECT_TRUE(in_cross_replica_context());
    const RunResult both = strategy.run(replica, {x});
    const RunResult again = strategy.run(replica, {both[0]});  // each with its own
    return std::vector<Array>{
        strategy.reduce(ReduceOp::kSum, both[0]), strategy.reduce(ReduceOp::kMean, both[0], 0),
        strategy.gather(both[0], 0), strategy.reduce(ReduceOp::kSum, again[0]),
        strategy.reduce(ReduceOp::kMean, both[1])};
  });
  const RunResult result = strategy.call(train, {floats({1, 2})});
  EXPECT_THAT(floats_of(result[0]), ElementsAre(6, 12));
  EXPECT_EQ(result[1].template item<float>(), 3.0f);
  EXPECT_THAT(floats_of(result[2]), ElementsAre(1, 2, 2, 4, 3, 6));
  EXPECT_THAT(floats_of(result[3]), ElementsAre(14, 28));
  EXPECT_EQ(result[4].template item<float>(), 1.0f);  // of integers
}

TYPED_TEST(InSync, ReplicasMeetInAllReduceAndMergeCall) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(1);
  Function step = strategy.function([&](Array x) {
    const ReplicaContext& replica = get_replica_context();
    Array sum = replica.merge_call(
        [&](Strategy& own, const PerReplica& value) {
          EXPECT_TRUE(in_cross_replica_context());
          const Array merged = own.reduce(ReduceOp::kSum, value);
          v.assign_add(merged);
          return merged;
        },
        x);
    return std::vector<Array>{sum, replica.all_reduce(ReduceOp::kMean, x), v.read()};
  });
  const PerReplica values(std::vector<Array>{1.0f, 2.0f, 6.0f});
  const RunResult result = strategy.run(step, {values});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(strategy.experimental_local_results(result[0])[i].template item<float>(), 9.0f);
    EXPECT_EQ(strategy.experimental_local_results(result[1])[i].template item<float>(), 3.0f);
    EXPECT_EQ(strategy.experimental_local_results(result[2])[i].template item<float>(), 10.0f);
  }
  EXPECT_EQ(this->value_of(v), 10.0f);
}

TYPED_TEST(InSync, RandomNumbersDifferByReplica) {
  Function step = this->strategy.function([] { return random_uniform({1}, 0, 1); });
  const RunResult result = this->strategy.run(step);
  const auto own = this->strategy.experimental_local_results(result[0]);
  EXPECT_NE(own[0].template item<float>(), own[1].template item<float>());
}

TYPED_TEST(InSync, AVariableThatTheFunctionMakesIsOneForAllReplicas) {
  Strategy& strategy = this->strategy;
  std::vector<std::string> names;
  Function step = strategy.function([&] {
    Variable made = get_strategy().create_variable(
        {.name = "made", .shape = {}, .aggregation = Aggregation::kSum});
    names.push_back(made.name());
    made.assign_add(cast(replica_id(), DType::kFloat32));
    return made.read();
  });
  EXPECT_EQ(strategy.experimental_local_results(strategy.run(step)[0])[2].template item<float>(),
            3.0f);
  EXPECT_THAT(names, ElementsAre("made", "made", "made"));
}

TYPED_TEST(InSync, AnotherStrategysVariableIsRefused) {
  OneDeviceStrategy another;
  Variable v = another.create_variable({.name = "v", .shape = {}});
  Function step = this->strategy.function([&] { v.assign(2.0f); });
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { this->strategy.run(step); }),
              HasSubstr("Mixing different"));
}

// ---- data ----

TYPED_TEST(InSync, CutsGlobalBatchesIntoPiecesOfWhichTheLastMayBeShort) {
  Strategy& strategy = this->strategy;
  auto batches =
      strategy.iterate(strategy.experimental_distribute_dataset(Dataset::range(10).batch(4)));
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  using Pieces = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(ids_of(strategy, strategy.run(step, {batches})[0]), (Pieces{{0, 1}, {2, 3}, {}}));
  EXPECT_EQ(ids_of(strategy, strategy.run(step, {batches})[0]), (Pieces{{4, 5}, {6, 7}, {}}));
  EXPECT_EQ(ids_of(strategy, strategy.run(step, {batches})[0]), (Pieces{{8}, {9}, {}}));
  EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
  EXPECT_THAT(message_of([&] { strategy.experimental_distribute_dataset(Dataset::range(10)); }),
              HasSubstr("batch() it"));
}

TYPED_TEST(InSync, ADatasetFunctionsBatchesGoToTheReplicasInTurn) {
  Strategy& strategy = this->strategy;
  const Strategy::DatasetFunction dataset_fn = [](const InputContext& context) {
    EXPECT_EQ(context.num_replicas_in_sync, 3);
    return Dataset::range(8).batch(context.get_per_replica_batch_size(6));
  };
  auto batches = strategy.iterate(strategy.distribute_datasets_from_function(dataset_fn));
  Function step =
      strategy.function([](Iterator input) { return input.get_next().features["value"]; });
  using Pieces = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(ids_of(strategy, strategy.run(step, {batches})[0]), (Pieces{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(ids_of(strategy, strategy.run(step, {batches})[0]), (Pieces{{6, 7}, {}, {}}));
  EXPECT_THROW(strategy.run(step, {batches}), OutOfRangeError);
}

TYPED_TEST(InSync, ReplicasTakeEquallyManyElements) {
  Strategy& strategy = this->strategy;
  auto batches = strategy.iterate(Dataset::range(10).batch(4));
  Function step = strategy.function([](Iterator input) {
    const Array own = input.get_next().features["value"];
    const bool more = get_replica_context().replica_id_in_sync_group() == 1;
    return more ? own + sum(input.get_next().features["value"]) : own;
  });
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { strategy.run(step, {batches}); }),
              HasSubstr("as often"));
}

TYPED_TEST(InSync, ElementsAreTakenOnReplicasAlone) {
  Strategy& strategy = this->strategy;
  auto batches = strategy.iterate(Dataset::range(10).batch(4));
  Function train = strategy.function([](Iterator input) { input.get_next(); });
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { strategy.call(train, {batches}); }),
              HasSubstr("Strategy::run"));
}

// ---- failures ----

TYPED_TEST(InSync, ReplicasThatDoNotMeetInTheSamePlacesAreRefusedBeforeTheyRun) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(1);
  Function step = strategy.function([&](Array x) {
    const ReplicaContext& replica = get_replica_context();
    v.assign_add(1.0f);
    return replica.replica_id_in_sync_group() == 2 ? replica.all_reduce(ReduceOp::kSum, x) : x;
  });
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { strategy.run(step, {1.0f}); }),
              AllOf(HasSubstr("replica 2"), HasSubstr("all_reduce sum float32[]")));
  EXPECT_EQ(this->value_of(v), 1.0f);
}

// Replica 1's value is not finite: it stops before its push, and the others at theirs.
TYPED_TEST(InSync, AReplicasFailureIsTheRunsAndNobodyIsAhead) {
  Strategy& strategy = this->strategy;
  auto scope = strategy.scope();
  Variable v = this->scalar(1);
  nn::Sgd optimizer({.learning_rate = 0.5f});
  Function step = strategy.function([&](Array x) {
    optimizer.minimize(v.read() * sum(x), {v});
    return v.read();
  });
  auto run = [&](float of_replica_1) {
    return strategy.run(
        step, {PerReplica(std::vector<Array>{floats({1}), floats({of_replica_1}), floats({1})})});
  };
  run(1);
  EXPECT_EQ(this->value_of(v), -0.5f);
  EXPECT_THAT(
      message_of<InvalidArgumentError>([&] { run(std::numeric_limits<float>::infinity()); }),
      HasSubstr("not finite"));
  EXPECT_EQ(this->value_of(v), -0.5f);
  EXPECT_EQ(optimizer.iterations().read().eval().template item<std::int64_t>(), 1);
  const RunResult after = run(3);  // the strategy goes on
  for (const RunValue& own : strategy.experimental_local_results(after[0]))
    EXPECT_EQ(own.template item<float>(), -3.0f);
}

// ---- checkpoints ----

TEST(InSyncCheckpoints, RestoreUnderAnyNumberOfReplicas) {
  tools::TempFolder folder;
  struct Variables {
    explicit Variables(Strategy& strategy) {
      plain = make(strategy, "plain", Aggregation::kNone, Synchronization::kAuto);
      total = make(strategy, "total", Aggregation::kSum, Synchronization::kOnRead);
      average = make(strategy, "average", Aggregation::kMean, Synchronization::kOnRead);
    }
    static Variable make(Strategy& strategy, const std::string& name, Aggregation aggregation,
                         Synchronization synchronization) {
      return strategy.create_variable({.name = name,
                                       .shape = {},
                                       .aggregation = aggregation,
                                       .synchronization = synchronization});
    }
    std::vector<float> values() const {
      return {plain.read().eval().item<float>(), total.read().eval().item<float>(),
              average.read().eval().item<float>()};
    }
    Variable plain, total, average;
  };
  std::string checkpoint;
  {
    MirroredStrategy strategy(logical_cpus(2));
    auto scope = strategy.scope();
    Variables made(strategy);
    made.plain.assign(7.0f);
    Function step = strategy.function([&] {
      const Array own = cast(replica_id() + 1, DType::kFloat32);
      made.total.assign_add(own);
      made.average.assign_add(own);
    });
    strategy.run(step);
    EXPECT_THAT(made.values(), ElementsAre(7, 3, 1.5f));
    checkpoint = strategy.save({.folder = folder.path()});
    strategy.run(step);  // saving left every copy as it was
    EXPECT_THAT(made.values(), ElementsAre(7, 6, 3));
  }
  auto restores = [&](Strategy& strategy) {
    auto scope = strategy.scope();
    Variables made(strategy);
    strategy.restore(checkpoint).assert_consumed();
    EXPECT_THAT(made.values(), ElementsAre(7, 3, 1.5f)) << strategy.num_replicas_in_sync();
  };
  OneDeviceStrategy one;
  restores(one);
  MirroredStrategy three(logical_cpus(3));
  restores(three);
  CentralStorageStrategy central(logical_cpus(2));
  restores(central);
}

// ---- devices, copies ----

TEST(MirroredDevices, AreLogicalCpusEachNamedOnce) {
  EXPECT_EQ(MirroredStrategy().num_replicas_in_sync(), 1);
  EXPECT_EQ(MirroredStrategy({"cpu:0", "/cpu:1", "/device:CPU:2"}).num_replicas_in_sync(), 3);
  EXPECT_THAT(message_of<InvalidArgumentError>([] {
                MirroredStrategy({"cpu:0", "CPU:0"});
              }),
              HasSubstr("named twice"));
  for (const char* name :
       {"tpu:0", "cpu", "cpu:", "cpu:x", "cpu:-1", "cpu:64", "", "gpu", "gpu:-1"})
    EXPECT_THROW(MirroredStrategy({"cpu:0", name}), InvalidArgumentError) << name;
}

// No machine has so many, so that the test is the same where there are some.
TEST(MirroredDevices, AGpuThatIsNotThereIsNotFoundAndNamedAsItWasGiven) {
  for (const auto& named : std::vector<std::function<void()>>{
           [] {
             MirroredStrategy({"cpu:0", "/GPU:99"});
           },
           [] { CentralStorageStrategy({"/GPU:99"}); }, [] { OneDeviceStrategy("/GPU:99"); }})
    EXPECT_THAT(message_of<NotFoundError>(named),
                AllOf(HasSubstr("\"/GPU:99\""), HasSubstr("no device gpu:99: ")));
}

TEST(MirroredDevices, OneDeviceComputesOnTheCpuThatIsNamed) {
  OneDeviceStrategy strategy("/CPU:3", 7);
  EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre("cpu:3"));
}

TEST(CentralStorageDevices, VariablesOnAGpuAreRefused) {
  EXPECT_THAT(
      message_of<InvalidArgumentError>([] { CentralStorageStrategy(logical_cpus(2), "gpu:0"); }),
      AllOf(HasSubstr("\"gpu:0\""), HasSubstr("name a logical CPU")));
}

TEST(MirroredCopies, OneThatDriftsIsFoundAndNamed) {
  MirroredStrategy strategy(logical_cpus(2), {.check_replicas = true});
  auto scope = strategy.scope();
  Variable steady = strategy.create_variable({.name = "steady", .shape = {2}});
  Variable drifting = strategy.create_variable({.name = "drifting", .shape = {3, 2}});
  Function step = strategy.function([] { return replica_id(); });
  strategy.run(step);
  std::vector<Update> alone{{.variable = 1,
                             .rule = {RuleKind::kAssign, {}},
                             .ids = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{2}),
                             .value = Tensor::zeros(DType::kFloat32, {1, 2})}};
  alone[0].value.mutable_values<float>()[1] = 1;
  strategy.store_of(1).push({}, alone);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { strategy.run(step); }),
              AllOf(HasSubstr("\"drifting\""), HasSubstr("replica 1"), HasSubstr("row 2")));
}

TEST(MirroredCopies, MayDifferWhereNothingBringsThemTogether) {
  MirroredStrategy strategy(logical_cpus(2), {.check_replicas = true});
  auto scope = strategy.scope();
  Variable v = strategy.create_variable({.name = "v", .shape = {}});
  Function step = strategy.function([&] {
    v.assign_add(cast(replica_id() + 1, DType::kFloat32));
    return v.read();
  });
  const RunResult result = strategy.run(step);
  EXPECT_EQ(strategy.experimental_local_results(result[0])[0].item<float>(), 1.0f);
  EXPECT_EQ(strategy.experimental_local_results(result[0])[1].item<float>(), 2.0f);
}

}  // namespace
}  // namespace cairn
