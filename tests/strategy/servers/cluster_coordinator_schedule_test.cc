// schedule, join, done and fetch as a user meets them, and what errors do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

struct Schedule : ::testing::Test {
  SimulatedCluster cluster{{.ps = 2, .workers = 2}};
  ClusterCoordinator coordinator{cluster.strategy()};
  Strategy& strategy() { return cluster.strategy(); }
};

Tensor ids(std::vector<std::int64_t> values) {
  auto n = static_cast<std::int64_t>(values.size());
  return Tensor::of<std::int64_t>({n}, values);
}

TEST_F(Schedule, AddsUpToTheNumberOfClosures) {
  Variable v = strategy().create_variable({.name = "v", .shape = {}});
  Function add = strategy().function([&](Array by) { v.assign_add(by); });
  for (int i = 0; i < 50; ++i) coordinator.schedule(add, {Tensor::scalar(2.0f)});
  coordinator.join(kPatience);
  EXPECT_TRUE(coordinator.done());
  EXPECT_EQ(v.read().eval().item<float>(), 100.0f);
}

TEST_F(Schedule, ArgumentsThatFitIntoNoMessageTogetherGoInSeveral) {
  constexpr std::int64_t kLength = 5'000'000;  // 20 MB; a message has 64
  Function first = strategy().function([](Array x) { return slice(x, 0, 0, 1); });
  const Tensor big = Tensor::zeros(DType::kFloat32, {kLength});
  std::vector<RemoteValue> values;
  for (int i = 0; i < 12; ++i) values.push_back(coordinator.schedule(first, {big}));
  coordinator.join(kPatience);
  for (const RemoteValue& value : values) EXPECT_EQ(value.get().values<float>()[0], 0.0f);
}

TEST_F(Schedule, JoinOnAnEmptyQueueReturnsAtOnceAndMayBeRepeated) {
  coordinator.join(std::chrono::milliseconds(1));
  coordinator.join(std::chrono::milliseconds(1));
  EXPECT_TRUE(coordinator.done());
}

TEST_F(Schedule, FetchGivesNamedOutputs) {
  Function both = strategy().function([](Array x) {
    return Outputs{{"twice", x + x}, {"square", x * x}};
  });
  RemoteValue value = coordinator.schedule(both, {Tensor::scalar(3.0f)});
  EXPECT_EQ(value.get("twice", kPatience).item<float>(), 6.0f);
  EXPECT_EQ(value.get("square", kPatience).item<float>(), 9.0f);
  try {
    value.get("sqare", kPatience);
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("square"));
  }
}

TEST_F(Schedule, ResultsInANestAreNamedByTheirWayThere) {
  Function nest = strategy().function([](Array x) {
    return std::map<std::string, std::vector<Array>>{{"sums", {x, x + x}}, {"square", {x * x}}};
  });
  RemoteValue value = coordinator.schedule(nest, {Tensor::scalar(3.0f)});
  EXPECT_EQ(value.get("sums/1", kPatience).item<float>(), 6.0f);
  EXPECT_EQ(value.get("square/0", kPatience).item<float>(), 9.0f);
}

TEST_F(Schedule, FetchKeepsTheNestItIsGiven) {
  Function same = strategy().function([](Array x) { return x + Array(0.0f); });
  std::map<std::string, std::vector<RemoteValue>> nest;
  for (float x : {1.0f, 2.0f})
    nest["twice"].push_back(coordinator.schedule(same, {Tensor::scalar(x)}));

  auto [values, text] = coordinator.fetch(std::pair{nest, std::string("as it is")}, kPatience);

  EXPECT_EQ(values.at("twice").at(1).at(0).item<float>(), 2.0f);
  EXPECT_EQ(text, "as it is");
}

TEST_F(Schedule, RunOnTheCoordinatorGivesTheOutputsOfOneClosure) {
  Function twice = strategy().function([](Array x) { return x + x; });
  EXPECT_EQ(cluster.strategy().run(twice, {Tensor::scalar(4.0f)}).at(0).item<float>(), 8.0f);
}

TEST_F(Schedule, TheFirstErrorIsRaisedOnceWithItsCauseAndTheClusterGoesOn) {
  Variable table = strategy().create_variable({.name = "table", .shape = {4, 2}});
  Function look = strategy().function([&](Array rows) { return reduce_sum(table.gather(rows)); });
  RemoteValue bad = coordinator.schedule(look, {ids({1, 9})});
  for (int i = 0; i < 200; ++i) coordinator.schedule(look, {ids({1})});

  try {
    coordinator.join(kPatience);
    FAIL() << "the error was not raised";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("table"));
    EXPECT_THAT(error.what(), HasSubstr("9"));
  }
  coordinator.join(kPatience);                             // once
  EXPECT_THROW(bad.get(kPatience), InvalidArgumentError);  // fetch raises it as often as asked
  EXPECT_THROW(bad.get(kPatience), InvalidArgumentError);
  EXPECT_EQ(coordinator.schedule(look, {ids({2})}).get(kPatience).elements(), 1);
}

TEST_F(Schedule, WhatWasQueuedBehindAnErrorIsCancelled) {
  Variable table = strategy().create_variable({.name = "table", .shape = {4, 2}});
  Function look = strategy().function([&](Array rows) { return reduce_sum(table.gather(rows)); });
  coordinator.schedule(look, {ids({9})});
  std::vector<RemoteValue> later;
  for (int i = 0; i < 400; ++i) later.push_back(coordinator.schedule(look, {ids({1})}));
  EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);
  EXPECT_THROW(later.back().get(kPatience), CancelledError);
}

TEST_F(Schedule, TracingErrorsAreRaisedByScheduleItself) {
  Function wrong = strategy().function([](Array a) { return matmul(a, a); });
  EXPECT_THROW(coordinator.schedule(wrong, {Tensor::scalar(1.0f)}), InvalidArgumentError);
  coordinator.join(kPatience);
}

TEST_F(Schedule, EndOfDataIsOutOfRange) {
  auto data = coordinator.create_shared_dataset(Dataset::range(3).batch(1));
  Function next =
      strategy().function([](Iterator input) { return input.get_next().features["value"]; });
  for (int i = 0; i < 4; ++i) coordinator.schedule(next, {data});
  EXPECT_THROW(coordinator.join(kPatience), OutOfRangeError);
}

TEST_F(Schedule, APerWorkerValueIsTheOneOfTheLaneThatRuns) {
  auto values = coordinator.create_per_worker_values([](const InputContext& context) {
    return Tensor::scalar(static_cast<float>(context.input_pipeline_id));
  });
  Function same = strategy().function([](Array x) { return x + Array(0.0f); });
  std::vector<RemoteValue> got;
  for (int i = 0; i < 100; ++i) got.push_back(coordinator.schedule(same, {values}));
  std::set<float> seen;
  for (auto& value : got) seen.insert(value.get(kPatience).item<float>());
  EXPECT_THAT(seen, ::testing::ElementsAre(0.0f, 1.0f));
}

TEST_F(Schedule, SeveralStepsInOneClosureSeeEachOthersUpdates) {
  Variable v = strategy().create_variable(
      {.name = "v", .shape = {}, .initializer = Initializer::constant(1)});
  Function doubled_thrice = strategy().function([&] {
    for (int i = 0; i < 3; ++i) v.assign(v.read() * Array(2.0f));
  });
  coordinator.schedule(doubled_thrice);
  coordinator.join(kPatience);
  EXPECT_EQ(v.read().eval().item<float>(), 8.0f);
}

TEST_F(Schedule, EveryLaneReadsItsOwnPipeline) {
  auto data = coordinator.create_per_worker_dataset([](const InputContext& context) {
    EXPECT_EQ(context.num_input_pipelines, 2);
    return Dataset::range(1000).shard(context).batch(1);
  });
  Function next =
      strategy().function([](Iterator input) { return input.get_next().features["value"]; });
  std::vector<RemoteValue> got;
  for (int i = 0; i < 60; ++i) got.push_back(coordinator.schedule(next, {data}));
  std::set<std::int64_t> seen;
  for (auto& value : got) seen.insert(value.get(kPatience).item<std::int64_t>());
  EXPECT_EQ(seen.size(), 60u);  // no element twice
}

// The first elements of each pipeline, by the lane that read them.
std::map<float, std::vector<std::int64_t>> read_by_each_lane(
    const std::function<Dataset(const InputContext&)>& dataset_fn) {
  SimulatedCluster cluster({.ps = 1, .workers = 3});
  ClusterCoordinator coordinator(cluster.strategy());
  auto data = coordinator.create_per_worker_dataset(dataset_fn);
  auto lane = coordinator.create_per_worker_values([](const InputContext& context) {
    return Tensor::scalar(static_cast<float>(context.input_pipeline_id));
  });
  Function next = cluster.strategy().function([](Iterator input, Array who) {
    return std::vector<Array>{input.get_next().features["value"], who + Array(0.0f)};
  });
  std::vector<RemoteValue> got;
  for (int i = 0; i < 60; ++i) got.push_back(coordinator.schedule(next, {data, lane}));
  std::map<float, std::vector<std::int64_t>> read;
  for (auto& value : got) {
    auto both = value.get_all(kPatience);
    read[both[1].item<float>()].push_back(both[0].item<std::int64_t>());
  }
  for (auto& [who, values] : read) values.resize(std::min<std::size_t>(values.size(), 5));
  return read;
}

TEST(Pipelines, ThatReadTheSameDataShuffleItEachInItsOwnOrder) {
  auto fn = [](const InputContext&) { return Dataset::range(1000).shuffle(1000, 7).batch(1); };
  auto read = read_by_each_lane(fn);
  ASSERT_EQ(read.size(), 3u);
  std::set<std::vector<std::int64_t>> orders;
  for (const auto& [who, values] : read) orders.insert(values);
  EXPECT_EQ(orders.size(), 3u) << "two workers were given the same examples in the same order";
  EXPECT_EQ(read_by_each_lane(fn), read) << "another run reads other orders";
}

TEST(Results, OfOneMessageDoNotWaitForEachOther) {
  SimulatedCluster cluster({.ps = 2, .workers = 1});
  ClusterCoordinator coordinator(cluster.strategy());
  Variable v = cluster.strategy().create_variable({.name = "v", .shape = {}});
  Variable w = cluster.strategy().create_variable({.name = "w", .shape = {}});
  const UpdateRule sgd{RuleKind::kSgd, {}};
  Function add_v = cluster.strategy().function([&] { v.update(sgd, Array(1.0f), Array(1.0f)); });
  Function add_w = cluster.strategy().function([&] { w.update(sgd, Array(1.0f), Array(1.0f)); });
  coordinator.schedule(add_v);
  coordinator.schedule(add_w);
  coordinator.join(kPatience);  // everything is prepared
  cluster.network().partition("worker0", "ps0");
  RemoteValue of_v = coordinator.schedule(add_v), of_w = coordinator.schedule(add_w);
  cluster.run_for(std::chrono::milliseconds(100));
  EXPECT_NE(of_v.ready(), of_w.ready());  // one of them needs ps0
  cluster.network().heal_all();
  coordinator.join(kPatience);
  EXPECT_TRUE(of_v.ready() && of_w.ready());
}

}  // namespace
}  // namespace cairn
