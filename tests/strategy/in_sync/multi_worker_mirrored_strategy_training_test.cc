// Several workers in step train to the numbers of one device with the same global batch, and to the
// same bits each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/strategy/adult_model.h"
#include "tests/strategy/image_model.h"
#include "tests/strategy/in_sync/workers_in_step.h"

namespace cairn {
namespace {

using testing::AdultModel;
using ::testing::Each;
using testing::ImageModel;

constexpr int kSteps = 200;
constexpr std::uint64_t kSeed = 11;
using Losses = std::vector<float>;

template <typename Model>
Losses losses_of(Strategy& strategy, int steps) {
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(Model::batches()));
  Function step = strategy.function([&](Iterator input) { return model.train_in_sync(input); });
  Losses losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(
        strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]).template item<float>());
  return losses;
}

// By worker.
template <typename Model>
std::vector<Losses> losses_of_workers(int workers, int replicas, int steps) {
  testing::SocketCluster cluster(workers);
  std::vector<Losses> losses(static_cast<std::size_t>(workers));
  const auto errors = cluster.run(
      [&](MultiWorkerMirroredStrategy& strategy) {
        losses[static_cast<std::size_t>(strategy.id_in_cluster())] =
            losses_of<Model>(strategy, steps);
      },
      {.seed = kSeed, .check_replicas = steps < kSteps, .devices = testing::devices(replicas)});
  EXPECT_THAT(errors, Each(""));
  return losses;
}

void expect_close(const Losses& got, const Losses& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(got[i] - wanted[i]), 1e-5f * std::abs(wanted[i])) << "step " << i;
}

// Workers with so many replicas each have the losses of one device and of a MirroredStrategy.
template <typename Model>
void train_alike(int workers, int replicas) {
  OneDeviceStrategy one_device(kSeed);
  MirroredStrategy mirrored(testing::devices(workers * replicas), {.seed = kSeed});
  const Losses wanted = losses_of<Model>(one_device, kSteps);
  const auto losses = losses_of_workers<Model>(workers, replicas, kSteps);
  EXPECT_EQ(losses[0], losses[1]);
  expect_close(losses[0], wanted);
  expect_close(losses[0], losses_of<Model>(mirrored, kSteps));
  EXPECT_LT(wanted.back(), wanted.front());  // it does learn
}

TEST(MultiWorkerTraining, TwoWorkersAreTwoReplicasAreOneDevice) { train_alike<AdultModel>(2, 1); }
TEST(MultiWorkerTraining, TwoWorkersTrainAConvolutionalNetworkAsOneDeviceDoes) {
  train_alike<ImageModel>(2, 1);
}
TEST(MultiWorkerTraining, TwoWorkersOfTwoReplicasAreFourReplicasAreOneDevice) {
  train_alike<AdultModel>(2, 2);
}
TEST(MultiWorkerTraining, TwoWorkersOfTwoReplicasTrainAConvolutionalNetworkAsOneDeviceDoes) {
  train_alike<ImageModel>(2, 2);
}

TEST(MultiWorkerTraining, RepeatsBitForBit) {
  for (const auto& [workers, replicas] : {std::pair(2, 1), {3, 1}, {2, 2}, {3, 2}}) {
    const auto losses = losses_of_workers<AdultModel>(workers, replicas, 20);
    for (const Losses& each : losses) EXPECT_EQ(each, losses[0]);
    EXPECT_EQ(losses_of_workers<AdultModel>(workers, replicas, 20), losses);
  }
}

}  // namespace
}  // namespace cairn
