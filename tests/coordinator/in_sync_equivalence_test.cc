// Several replicas in sync train to the numbers of one device with the same global batch, and to
// the same bits each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "coordinator/central_storage_strategy.h"
#include "coordinator/mirrored_strategy.h"
#include "coordinator/one_device_strategy.h"
#include "tests/coordinator/adult_model.h"

namespace cairn {
namespace {

using testing::adult;
using testing::AdultModel;

constexpr int kSteps = 200;
constexpr std::uint64_t kSeed = 11;

std::vector<float> losses_on_one_device() {
  OneDeviceStrategy strategy(kSeed);
  auto scope = strategy.scope();
  AdultModel model;
  auto batches = strategy.iterate(adult().batches);
  Function step = strategy.function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i)
    losses.push_back(strategy.run(step, {batches}).front().item<float>());
  return losses;
}

// By run() and reduce() of the program, or all of it in one function.
enum class By { kRun, kCall };

std::vector<float> losses_in_sync(InSyncStrategy& strategy, By by, int steps) {
  auto scope = strategy.scope();
  AdultModel model;
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(adult().batches));
  Function step = strategy.function([&](Iterator input) { return model.train_in_sync(input); });
  Function train = strategy.function([&](Iterator input) {
    return strategy.reduce(ReduceOp::kSum, strategy.run(step, {input})[0]);
  });
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(
        by == By::kCall
            ? strategy.call(train, {batches}).front().item<float>()
            : strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]).item<float>());
  return losses;
}

const std::vector<std::string> kTwo = {"cpu:0", "cpu:1"}, kThree = {"cpu:0", "cpu:1", "cpu:2"};
const InSyncOptions kChecked = {.seed = kSeed, .check_replicas = true};

std::unique_ptr<InSyncStrategy> make(const std::string& which) {
  if (which == "Mirrored2") return std::make_unique<MirroredStrategy>(kTwo, kChecked);
  if (which == "Mirrored3") return std::make_unique<MirroredStrategy>(kThree, kChecked);
  if (which == "Mirrored1")
    return std::make_unique<MirroredStrategy>(std::vector<std::string>{}, kChecked);
  return std::make_unique<CentralStorageStrategy>(kTwo, "cpu:0", kChecked);
}

struct InSyncTraining : ::testing::TestWithParam<std::tuple<std::string, By>> {};

TEST_P(InSyncTraining, LossesAreThoseOfOneDeviceWithTheGlobalBatch) {
  static const std::vector<float> wanted = losses_on_one_device();
  const auto& [which, by] = GetParam();
  const auto losses = losses_in_sync(*make(which), by, kSteps);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(losses[i] - wanted[i]), 1e-5f * std::abs(wanted[i])) << "step " << i;
  EXPECT_LT(wanted.back(), wanted.front());  // it does learn
}

TEST_P(InSyncTraining, RepeatsBitForBit) {
  const auto& [which, by] = GetParam();
  EXPECT_EQ(losses_in_sync(*make(which), by, 20), losses_in_sync(*make(which), by, 20));
}

INSTANTIATE_TEST_SUITE_P(Strategies, InSyncTraining,
                         ::testing::Combine(::testing::Values("Mirrored1", "Mirrored2", "Mirrored3",
                                                              "Central2"),
                                            ::testing::Values(By::kRun, By::kCall)),
                         [](const auto& of) {
                           const bool call = std::get<1>(of.param) == By::kCall;
                           return std::get<0>(of.param) + (call ? "ByCall" : "ByRun");
                         });

}  // namespace
}  // namespace cairn
