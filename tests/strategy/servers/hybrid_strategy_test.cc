// HybridStrategy: tables on ps, all else mirrored among the workers and in step.
#include "strategy/servers/hybrid_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/adult_model.h"
#include "tests/strategy/image_model.h"

namespace cairn {
namespace {

using testing::AdultModel;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::ImageModel;

constexpr std::uint64_t kHybridSeed = 11;

SimulatedClusterOptions hybrid(int workers, std::uint64_t network = 1) {
  SimulatedClusterOptions options{.ps = 2, .workers = workers};
  options.network.seed = network;
  options.strategy.seed = kHybridSeed;
  options.strategy.partitioner = FixedShardsPartitioner(2);
  options.strategy.consistency = HybridConsistency::make();
  return options;
}

std::vector<float> one_device_losses(int steps) {
  OneDeviceStrategy strategy(kHybridSeed);
  auto scope = strategy.scope();
  ImageModel model;
  auto batches = strategy.iterate(ImageModel::batches());
  Function step = strategy.function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(strategy.run(step, {batches}).front().item<float>());
  return losses;
}

std::vector<float> hybrid_losses(int steps, std::uint64_t network) {
  SimulatedCluster cluster(hybrid(2, network));
  auto scope = cluster.strategy().scope();
  ClusterCoordinator coordinator(cluster.strategy());
  ImageModel model;
  auto halves = coordinator.create_shared_dataset(ImageModel::halves());
  Function step =
      cluster.strategy().function([&](Iterator input) { return model.train_in_sync(input); });
  std::vector<RemoteValue> shares;
  for (int i = 0; i < 2 * steps; ++i) shares.push_back(coordinator.schedule(step, {halves}));
  coordinator.join(kPatience);
  std::vector<float> losses;
  for (std::size_t i = 0; i < shares.size(); i += 2)
    losses.push_back(shares[i].get().item<float>() + shares[i + 1].get().item<float>());
  return losses;
}

TEST(HybridStrategy, WhatIsMirroredIsTrainedAsOnOneDeviceWithTheGlobalBatch) {
  const std::vector<float> wanted = one_device_losses(200), losses = hybrid_losses(200, 1);
  ASSERT_EQ(losses.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(losses[i] - wanted[i]), 1e-5f * std::abs(wanted[i])) << "step " << i;
  EXPECT_LT(wanted.back(), wanted.front());
}

TEST(HybridStrategy, WhatIsMirroredRepeatsBitForBitWhicheverWorkerIsFaster) {
  EXPECT_EQ(hybrid_losses(40, 1), hybrid_losses(40, 2));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// A table, a dense layer and an optimizer with slots, whose gradients are clipped by the norm of
// all of them. Each step returns what it read of the layer.
struct Mixed {
  static constexpr std::int64_t kRows = 50, kDim = 3;
  explicit Mixed(Strategy& strategy) {
    table = strategy.create_variable({.name = "table",
                                      .shape = {kRows, kDim},
                                      .initializer = Initializer::uniform(-0.1f, 0.1f, 3)});
    layer = strategy.create_variable(
        {.name = "layer", .shape = {kDim, 5}, .initializer = Initializer::uniform(-1, 1, 4)});
    bias = strategy.create_variable(
        {.name = "bias", .shape = {5}, .initializer = Initializer::zeros()});
  }
  std::vector<Array> train(Iterator input) const {
    const Array ids = input.get_next().features["value"];
    const Array seen = layer.read();
    const Array out = tanh(matmul(table.gather(ids), seen) + bias.read());
    adam.minimize(mean(square(out - Array(0.5f))));
    return {seen, bias.read()};
  }
  Variable table, layer, bias;
  nn::Adam adam{{.learning_rate = 0.05f, .clipping = {.global_clipnorm = 0.3f}}};
};

TEST(HybridStrategy, EveryCopyIsThatOfThePsAfterEveryStepToTheLastBit) {
  SimulatedCluster cluster(hybrid(3));
  auto scope = cluster.strategy().scope();
  ClusterCoordinator coordinator(cluster.strategy());
  Mixed model(cluster.strategy());
  auto data = coordinator.create_shared_dataset(Dataset::range(Mixed::kRows).repeat().batch(4));
  Function step = cluster.strategy().function([&](Iterator input) { return model.train(input); });
  for (int round = 0; round < 20; ++round) {
    const Tensor on_ps = model.layer.read().eval();
    std::vector<RemoteValue> members;
    for (int i = 0; i < 3; ++i) members.push_back(coordinator.schedule(step, {data}));
    for (RemoteValue& member : members)
      EXPECT_TRUE(same_bits(member.get_all(kPatience)[0], on_ps)) << "step " << round;
  }
}

struct Counting {
  explicit Counting(Strategy& strategy) : counters(strategy) {}
  void add_one(Iterator input) const {
    counters.subtract_gradients(input.get_next().features["value"]);
  }
  void expect_all_once() const {
    EXPECT_EQ(counters.value_of_v(), static_cast<float>(Counters::kRows));
    EXPECT_EQ(counters.value_of_w(), static_cast<float>(Counters::kRows));
    EXPECT_THAT(counters.value_of_rows(), Each(1.0f));
  }
  Counters counters;
};

TEST(HybridStrategy, ClosuresThatDoNotMakeAWholeRoundAreAppliedAllTheSame) {
  for (int workers : {1, 3, 4}) {  // of 100 closures
    SimulatedCluster cluster(hybrid(workers));
    ClusterCoordinator coordinator(cluster.strategy());
    Counting counting(cluster.strategy());
    auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
    Function add = cluster.strategy().function([&](Iterator input) { counting.add_one(input); });
    for (int i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});
    coordinator.join(kPatience);
    counting.expect_all_once();
    EXPECT_EQ(coordinator.stats().global_step, (Counters::kRows + workers - 1) / workers);
  }
}

TEST(HybridStrategy, AWorkersDeathLeavesTheOthersAtWorkAndItsSuccessorJoinsThem) {
  for (int at : {2, 4, 7}) {
    SimulatedCluster cluster(hybrid(3, static_cast<std::uint64_t>(at)));
    ClusterCoordinator coordinator(cluster.strategy());
    Counting counting(cluster.strategy());
    auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
    Function add = cluster.strategy().function([&](Iterator input) { counting.add_one(input); });
    for (int i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});
    cluster.run_for(std::chrono::milliseconds(at));
    cluster.kill_worker(1);
    cluster.run_for(std::chrono::milliseconds(30));
    cluster.start_worker(1);
    coordinator.join(kPatience);
    counting.expect_all_once();
  }
}

// The program waits for the checkpoint and schedules nothing meanwhile. The checkpoint waits for
// the pushed rows of a round that has become too large for the closures that are left.
TEST(HybridStrategy, ACheckpointNeedsNoFurtherClosuresWhenAWorkerIsLost) {
  for (int at = 3800; at < 5600; at += 50) {
    SCOPED_TRACE(at);
    SimulatedCluster cluster(hybrid(3, static_cast<std::uint64_t>(at)));
    ClusterCoordinator coordinator(cluster.strategy());
    Counting counting(cluster.strategy());
    auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
    Function add = cluster.strategy().function([&](Iterator input) { counting.add_one(input); });
    for (int i = 0; i < 3; ++i) coordinator.schedule(add, {data});
    cluster.run_for(std::chrono::microseconds(at));
    cluster.kill_worker(1);
    coordinator.save({.folder = "/checkpoints"});
    coordinator.join(kPatience);
    EXPECT_EQ(coordinator.counts().finished, 3u);
  }
}

// If two workers do not reach each other, no group forms: the run waits, and says so.
TEST(HybridStrategy, WorkersThatCannotReachEachOtherAreWaitedFor) {
  SimulatedCluster cluster(hybrid(2));
  ClusterCoordinator coordinator(cluster.strategy());
  Counting counting(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = cluster.strategy().function([&](Iterator input) { counting.add_one(input); });
  for (int i = 0; i < Counters::kRows; ++i) coordinator.schedule(add, {data});
  cluster.run_for(std::chrono::milliseconds(5));
  cluster.network().partition_both("worker0", "worker1");
  cluster.run_for(std::chrono::minutes(2));
  EXPECT_FALSE(coordinator.done());
  EXPECT_THAT(coordinator.status_json(), HasSubstr("to form a group"));
  cluster.network().heal_all();
  coordinator.join(kPatience);
  counting.expect_all_once();
}

// A new layout may have other slots, so that lanes fetch their copies anew, while rounds go on.
TEST(HybridStrategy, VariablesThatAreMadeMeanwhileLeaveTheCopiesEqual) {
  SimulatedCluster cluster(hybrid(3));
  ClusterCoordinator coordinator(cluster.strategy());
  Counting counting(cluster.strategy());
  auto data = coordinator.create_shared_dataset(numbers(Counters::kRows));
  Function add = cluster.strategy().function([&](Iterator input) { counting.add_one(input); });
  for (int i = 0; i < Counters::kRows; ++i) {
    coordinator.schedule(add, {data});
    if (i % 20 != 10) continue;
    Variable late = cluster.strategy().create_variable(
        {.name = "late", .shape = {3}, .initializer = Initializer::zeros()});
    Function other = cluster.strategy().function(
        [&] { late.update({.kind = RuleKind::kSgd}, late.read() - Array(1.0f), Array(1.0f)); });
    for (int k = 0; k < 3; ++k) coordinator.schedule(other, {});
    cluster.run_for(std::chrono::milliseconds(4));
  }
  coordinator.join(kPatience);
  counting.expect_all_once();
}

TEST(HybridStrategy, AStepThatFailsEndsNothingButItself) {
  SimulatedCluster cluster(hybrid(2));
  ClusterCoordinator coordinator(cluster.strategy());
  Variable v = cluster.strategy().create_variable(
      {.name = "v", .shape = {}, .initializer = Initializer::zeros()});
  Function step = cluster.strategy().function([&](Array x) {
    const Array checked = check_numerics(x, "x");
    v.update({.kind = RuleKind::kSgd}, checked, Array(1.0f));
    return checked;
  });
  coordinator.schedule(step, {Tensor::scalar(NAN)});
  EXPECT_THROW(coordinator.join(kPatience), InvalidArgumentError);
  for (int i = 0; i < 4; ++i) coordinator.schedule(step, {Tensor::scalar(-1.0f)});
  coordinator.join(kPatience);
  EXPECT_EQ(v.read().eval().item<float>(), 4.0f);
}

TEST(HybridStrategy, GoesOnFromACheckpointWithItsOptimizersState) {
  SimulatedCluster cluster(hybrid(2));
  auto scope = cluster.strategy().scope();
  ClusterCoordinator coordinator(cluster.strategy());
  Mixed model(cluster.strategy());
  auto data = coordinator.create_shared_dataset(Dataset::range(Mixed::kRows).repeat().batch(4));
  // Rows of tables are pushed at once, so that what the layer learns repeats without them only.
  Function step = cluster.strategy().function([&](Iterator input) {
    input.get_next();
    const Array out = tanh(
        matmul(Array(Tensor::of<float>({1, 3}, std::vector<float>{1, -1, 2})), model.layer.read()));
    model.adam.minimize(mean(square(out - Array(0.5f))));
  });
  const auto train = [&](int closures) {
    for (int i = 0; i < closures; ++i) coordinator.schedule(step, {data});
    coordinator.join(kPatience);
    return model.layer.read().eval();
  };
  train(10);
  const std::string saved = cluster.strategy().save({.folder = "/checkpoints"});
  const Tensor wanted = train(10);
  train(6);
  cluster.strategy().restore(saved);
  EXPECT_TRUE(same_bits(train(10), wanted));
}

TEST(HybridStrategy, AVariableIsATableOrMirroredAndNotBoth) {
  SimulatedCluster cluster(hybrid(2));
  ClusterCoordinator coordinator(cluster.strategy());
  Variable both = cluster.strategy().create_variable(
      {.name = "both", .shape = {4, 2}, .initializer = Initializer::zeros()});
  nn::Sgd sgd({.learning_rate = 0.1f});
  Function rows =
      cluster.strategy().function([&](Array ids) { sgd.minimize(sum(both.gather(ids))); });
  Function whole = cluster.strategy().function([&] { sgd.minimize(sum(both.read())); });
  coordinator.schedule(rows, {Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1})});
  try {
    coordinator.schedule(whole, {});
    ADD_FAILURE() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"both\""));
    EXPECT_THAT(error.what(), HasSubstr("two variables"));
  }
  coordinator.join(kPatience);
}

TEST(HybridStrategy, OfAWorkerOfSeveralLanesTheFirstComputes) {
  SimulatedClusterOptions options = hybrid(2);
  options.lanes = 3;
  SimulatedCluster cluster(options);
  EXPECT_EQ(cluster.strategy().host().engine().lane_count(), 2u);
}

}  // namespace
}  // namespace cairn
