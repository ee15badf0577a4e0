// Several replicas in sync train to the numbers of one device with the same global batch, and to
// the same bits each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "tests/strategy/adult_model.h"
#include "tests/strategy/image_model.h"

namespace cairn {
namespace {

using testing::AdultModel;
using testing::ImageModel;

constexpr int kSteps = 200;
constexpr std::uint64_t kSeed = 11;

template <typename Model>
std::vector<float> losses_on_one_device(Array (Model::*train)(Iterator) const = &Model::train) {
  OneDeviceStrategy strategy(kSeed);
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(Model::batches());
  Function step = strategy.function([&](Iterator input) { return (model.*train)(input); });
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i)
    losses.push_back(strategy.run(step, {batches}).front().template item<float>());
  return losses;
}

// By run() and reduce() of the program, or all of it in one function.
enum class By { kRun, kCall };

template <typename Model>
std::vector<float> losses_in_sync(InSyncStrategy& strategy, By by, int steps) {
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(Model::batches()));
  Function step = strategy.function([&](Iterator input) { return model.train_in_sync(input); });
  Function train = strategy.function([&](Iterator input) {
    return strategy.reduce(ReduceOp::kSum, strategy.run(step, {input})[0]);
  });
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(by == By::kCall
                         ? strategy.call(train, {batches}).front().template item<float>()
                         : strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0])
                               .template item<float>());
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

struct InSyncTraining : ::testing::TestWithParam<std::tuple<std::string, By>> {
  template <typename Model>
  static void gives_the_losses_of_one_device() {
    static const std::vector<float> wanted = losses_on_one_device<Model>();
    const auto& [which, by] = GetParam();
    const auto losses = losses_in_sync<Model>(*make(which), by, kSteps);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_LE(std::abs(losses[i] - wanted[i]), 1e-5f * std::abs(wanted[i])) << "step " << i;
    EXPECT_LT(wanted.back(), wanted.front());  // it does learn
  }
  template <typename Model>
  static void repeats_bit_for_bit() {
    const auto& [which, by] = GetParam();
    EXPECT_EQ(losses_in_sync<Model>(*make(which), by, 20),
              losses_in_sync<Model>(*make(which), by, 20));
  }
};

TEST_P(InSyncTraining, LossesAreThoseOfOneDeviceWithTheGlobalBatch) {
  gives_the_losses_of_one_device<AdultModel>();
}
TEST_P(InSyncTraining, LossesOfAConvolutionalNetworkAreThoseOfOneDevice) {
  gives_the_losses_of_one_device<ImageModel>();
}

TEST_P(InSyncTraining, RepeatsBitForBit) {
  repeats_bit_for_bit<AdultModel>();
  repeats_bit_for_bit<ImageModel>();
}

// Replicas and one device differ in the order in which gradients are summed, and in nothing
// else.
TEST(InSyncSums, TwoReplicasAreOneDeviceThatSumsByHalvesToTheLastBit) {
  EXPECT_EQ(losses_in_sync<ImageModel>(*make("Mirrored2"), By::kRun, kSteps),
            losses_on_one_device(&ImageModel::train_by_halves));
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
