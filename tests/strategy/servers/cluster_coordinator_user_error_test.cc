// The state after an error of the user's: datasets at their places, a queue in use; and how a
// dataset's own failure is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/base/origin.h"
#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct UserError : ::testing::Test {
  explicit UserError(SimulatedClusterOptions options = {.ps = 2, .workers = 2})
      : cluster(std::move(options)) {}
  SimulatedCluster cluster;
  ClusterCoordinator coordinator{cluster.strategy()};
  Variable table = cluster.strategy().create_variable({.name = "table", .shape = {4, 1}});
  Function look = cluster.strategy().function([this](Array rows) { return table.gather(rows); });
  Function next = cluster.strategy().function(
      [](Iterator input) { return input.get_next().features["value"]; });

  RemoteValue schedule_failing() {
    return coordinator.schedule(look,
                                {Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{9})});
  }
};

Dataset missing_file() {
  return Dataset::csv("no-such-file.csv",
                      CsvSchema{.columns = {{.name = "value", .dtype = DType::kInt64}}})
      .batch(1);
}

// The elements that were given out, of all that were.
std::vector<std::int64_t> given(const std::vector<RemoteValue>& values) {
  std::vector<std::int64_t> got;
  for (const RemoteValue& value : values) try {
      got.push_back(value.get(kPatience).item<std::int64_t>());
    } catch (const CancelledError&) {  // it took none
    }
  return got;
}

TEST_F(UserError, DatasetsGoOnWhereTheyStoodAndNoElementIsLostOrGivenTwice) {
  auto data = coordinator.create_shared_dataset(numbers(1100));
  std::vector<RemoteValue> values;
  for (int i = 0; i < 20; ++i) values.push_back(coordinator.schedule(next, {data}));
  schedule_failing();
  for (int i = 0; i < 1000; ++i) values.push_back(coordinator.schedule(next, {data}));
  EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);
  const std::size_t before = given(values).size();
  EXPECT_LT(before, 1020u);  // some were cancelled

  for (int i = 0; i < 50; ++i) values.push_back(coordinator.schedule(next, {data}));
  coordinator.join(kPatience);

  auto got = given(values);
  std::sort(got.begin(), got.end());
  std::vector<std::int64_t> all(before + 50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(got, all);
}

// Both functions are the same graph, which the workers know as one.
TEST_F(UserError, AnErrorMetOnAWorkerNamesTheLineOfTheFunctionThatWasScheduled) {
  static std::int32_t line = 0;
  set_origin_source([] { return make_origin("/home/me/train.py", "look", line); });
  const Tensor outside = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{9});
  for (const std::int32_t at : {40, 50}) {
    Function looking = cluster.strategy().function([&](Array rows) {
      line = at;
      return table.gather(rows);
    });
    const RemoteValue value = coordinator.schedule(looking, {outside});
    try {
      coordinator.join(kPatience);
      ADD_FAILURE() << "row 9 of 4 was there";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(str("train.py:", at, ", in look: gather_variable(int64[1]):")));
      EXPECT_EQ(error.place().origin, str("/home/me/train.py:", at));
    }
    EXPECT_THROW(value.get(kPatience), InvalidArgumentError);
  }
  set_origin_source(nullptr);
}

// As on one device: what depends on the checked value stops, and what does not goes on to its end.
TEST_F(UserError, AFailedCheckOfNumericsLetsTheUpdatesThroughThatDoNotDependOnIt) {
  const auto scalar = [&](const char* name) {
    return cluster.strategy().create_variable({.name = name, .shape = {}});
  };
  Variable bad = scalar("bad"), good = scalar("good"), later = scalar("later");
  Function step = cluster.strategy().function([&](Array x) {
    bad.assign(check_numerics(log(x), "the logarithm"));
    good.assign(x);
    later.assign(good.read() * 2.0f);
  });
  const auto values = [&] {
    std::vector<float> all;
    for (const Variable* v : {&bad, &good, &later}) all.push_back(v->read().eval().item<float>());
    return all;
  };
  coordinator.schedule(step, {Tensor::of<float>({}, std::vector<float>{-1})});
  try {
    coordinator.join(kPatience);
    FAIL() << "the check passed";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the logarithm is nan"));
  }
  EXPECT_EQ(values(), (std::vector<float>{0, -1, -2}));
  EXPECT_EQ(coordinator.stats().global_step, 0);  // a closure that failed is no step

  coordinator.save({.folder = "/checkpoints"});  // nor is it torn
  coordinator.schedule(step, {Tensor::of<float>({}, std::vector<float>{1})});
  coordinator.join(kPatience);
  EXPECT_EQ(values(), (std::vector<float>{0, 1, 2}));
}

TEST_F(UserError, IsRaisedInTimeThoughAnotherClosureHangs) {
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {64}});
  Function read = cluster.strategy().function([&] { return reduce_sum(v.read()); });
  for (int i = 0; i < 2; ++i) coordinator.schedule(read);  // both workers know it
  coordinator.join(kPatience);
  for (const char* worker : {"worker0", "worker1"})
    for (const char* ps : {"ps0", "ps1"}) cluster.network().partition_both(worker, ps);
  const Duration began = cluster.reactor().now();

  // whichever worker has it: the row's number is looked at before any ps is asked
  schedule_failing();
  coordinator.schedule(read);  // to the other, which reaches no ps and is alive
  EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);

  EXPECT_EQ(coordinator.counts().inflight, 1u);
  EXPECT_LE(cluster.reactor().now() - began, std::chrono::seconds(11));
  cluster.network().heal_all();
  EXPECT_EQ(coordinator.schedule(read).get(kPatience).elements(), 1);
  coordinator.join(kPatience);
}

TEST_F(UserError, AFailingDatasetIsAClosureInputErrorOfJoinAndOfFetch) {
  auto data = coordinator.create_per_worker_dataset(missing_file(), "flights");
  RemoteValue value = coordinator.schedule(next, {data});
  try {
    coordinator.join(kPatience);
    FAIL() << "the dataset's failure was not reported";
  } catch (const ClosureInputError& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("flights/0"), HasSubstr("no-such-file.csv"),
                                    HasSubstr("/job:worker/task:0")));
  }
  EXPECT_THROW(value.get(kPatience), ClosureInputError);
  EXPECT_THROW(value.get(kPatience), ClosureInputError);  // as often as asked
  coordinator.join(kPatience);                            // and here once
}

TEST_F(UserError, AnotherDatasetIsReadAfterOneFailed) {
  auto bad = coordinator.create_per_worker_dataset(missing_file());
  auto good = coordinator.create_shared_dataset(numbers(10));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(coordinator.schedule(next, {good}).get(kPatience).item<std::int64_t>(), i);
    coordinator.schedule(next, {bad});
    EXPECT_THROW(coordinator.join(kPatience), ClosureInputError);
  }
}

TEST_F(UserError, AFailingDatasetThatNoClosureTakesFromRaisesNothing) {
  coordinator.create_per_worker_dataset(missing_file());
  auto good = coordinator.create_per_worker_dataset(numbers(10));
  coordinator.schedule(next, {good});
  coordinator.join(kPatience);
}

TEST_F(UserError, TheEndOfTheDataIsNoFailureOfIt) {
  auto data = coordinator.create_shared_dataset(numbers(1));
  coordinator.schedule(next, {data}).get(kPatience);
  coordinator.schedule(next, {data});
  EXPECT_THROW(coordinator.join(kPatience), OutOfRangeError);
}

TEST_F(UserError, ADatasetFunctionThatFailsIsAClosureInputErrorNamingItsPipeline) {
  auto made = [](const InputContext& context) -> Dataset {
    if (context.input_pipeline_id == 1) throw NotFoundError("no part 1");
    return numbers(1);
  };
  try {
    coordinator.create_per_worker_dataset(made, "parts");
    FAIL() << "the dataset function's failure was not reported";
  } catch (const ClosureInputError& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_EQ(error.pipeline(), 1u);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("parts"), HasSubstr("pipeline 1 of 2"), HasSubstr("no part 1")));
  }
  coordinator.join(kPatience);  // nothing was queued: nothing is raised again
}

struct NarrowQueue : UserError {
  NarrowQueue()
      : UserError({.ps = 2, .workers = 2, .strategy = {.engine = {.queue_capacity = 2}}}) {}
};

TEST_F(NarrowQueue, AllClosuresGetThroughAndEachCounts) {
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {}});
  Function add = cluster.strategy().function([&] { v.assign_add(Array(1.0f)); });
  for (int i = 0; i < 200; ++i) coordinator.schedule(add);
  coordinator.join(kPatience);
  EXPECT_EQ(v.read().eval().item<float>(), 200.0f);
}

TEST_F(NarrowQueue, AnErrorReachesTheScheduleThatWaits) {
  schedule_failing();
  auto data = coordinator.create_shared_dataset(numbers(1000));
  EXPECT_THROW(for (int i = 0; i < 500; ++i) coordinator.schedule(next, {data}),
               InvalidArgumentError);
  coordinator.join(kPatience);
}

// ---- an error while a worker dies ----

struct ErrorAndLoss : ::testing::TestWithParam<int> {};

TEST_P(ErrorAndLoss, EachClosureIsWholeOnEveryShardOrOnNone) {
  const int seed = GetParam();
  SimulatedCluster cluster({.ps = 2, .workers = 3, .seed = static_cast<std::uint64_t>(seed)});
  ClusterCoordinator coordinator(cluster.strategy());
  Counters counters(cluster.strategy());
  Function add = cluster.strategy().function([&](Array ids) { counters.add_one(ids); });
  auto row = [](std::int64_t id) { return Tensor::of<std::int64_t>({1}, std::vector{id}); };
  std::vector<RemoteValue> values;
  for (int i = 0; i < 6; ++i) values.push_back(coordinator.schedule(add, {row(i)}));
  coordinator.schedule(add, {row(Counters::kRows)});  // there is no such row
  for (int i = 6; i < 100; ++i) values.push_back(coordinator.schedule(add, {row(i)}));

  // Cut off from one ps, the worker pushes to the other alone before it dies.
  cluster.run_for(std::chrono::microseconds(500 * seed));
  cluster.network().partition_both("worker" + std::to_string(seed % 3), "ps1");
  cluster.run_for(std::chrono::milliseconds(4));
  cluster.kill_worker(seed % 3);
  EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);
  cluster.network().heal_all();
  cluster.start_worker(seed % 3);
  coordinator.join(kPatience);

  float done = 0;
  for (const RemoteValue& value : values) try {
      value.get_all(kPatience);
      ++done;
    } catch (const CancelledError&) {
    }
  const auto rows = counters.value_of_rows();
  EXPECT_EQ(counters.value_of_v(), done);
  EXPECT_EQ(counters.value_of_w(), done);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0f), done);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ErrorAndLoss, ::testing::Range(1, 25));

// ---- a worker that returns ----

struct Returns : ::testing::TestWithParam<int> {};

// Dataset, per-worker value, function and variables in one closure: whatever is missing would be
// its error.
TEST_P(Returns, AWorkerHasAllThatItsFirstClosureNeeds) {
  SimulatedCluster cluster({.ps = 1, .workers = 1, .seed = 7});
  ClusterCoordinator coordinator(cluster.strategy());
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {}});
  auto data = coordinator.create_per_worker_dataset(numbers(100));
  auto value = coordinator.create_per_worker_values(
      [](const InputContext&) { return Tensor::scalar<std::int64_t>(1000); });
  Function step = cluster.strategy().function([&](Iterator input, Array own) {
    v.assign_add(Array(1.0f));
    return input.get_next().features["value"] + own;
  });
  std::vector<RemoteValue> values;
  for (int life = 0; life < 3; ++life) {
    for (int i = 0; i < 5; ++i) values.push_back(coordinator.schedule(step, {data, value}));
    cluster.run_for(std::chrono::microseconds(700 * life));  // some are done, some on their way
    cluster.kill_worker(0);
    cluster.run_for(std::chrono::milliseconds(GetParam()));
    cluster.start_worker(0);
  }
  coordinator.join(kPatience);

  std::vector<std::int64_t> expected(values.size());
  std::iota(expected.begin(), expected.end(), 1000);
  EXPECT_EQ(given(values), expected);
  EXPECT_EQ(v.read().eval().item<float>(), static_cast<float>(values.size()));
}

INSTANTIATE_TEST_SUITE_P(AfterMilliseconds, Returns, ::testing::Values(0, 1, 30, 5000));

TEST(WorkerAway, TheOthersGoOnWithoutIt) {
  SimulatedCluster cluster({.ps = 1, .workers = 3});
  ClusterCoordinator coordinator(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(60));
  Function next = cluster.strategy().function(
      [](Iterator input) { return input.get_next().features["value"]; });
  std::vector<RemoteValue> values;
  for (int i = 0; i < 60; ++i) values.push_back(coordinator.schedule(next, {data}));
  cluster.kill_worker(0);
  cluster.kill_worker(1);
  cluster.run_for(std::chrono::milliseconds(50));
  cluster.start_worker(1);  // the first stays away
  coordinator.join(kPatience);
  auto got = given(values);
  EXPECT_EQ(std::set<std::int64_t>(got.begin(), got.end()).size(), 60u);
}

}  // namespace
}  // namespace cairn
