// Replicas that have their copies of the variables in the memory of their GPUs. That they train to
// the numbers of one device is in the tests of all kinds (in_sync_kinds.h).
#include "tests/strategy/in_sync/mirrored_on_gpus.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using cuda::Use;

constexpr std::int64_t kRows = 5000, kDim = 8;

// Each replica looks rows up, other ones in each step, and some that another replica has too.
struct MirroredOnTwoGpus : ::testing::Test {
  testing::MirroredOnGpus strategy{2, {.seed = 3}};
  decltype(strategy.scope()) scope = strategy.scope();
  nn::Embedding table{{.name = "table", .rows = kRows, .dim = kDim, .combiner = Combiner::kSum}};
  nn::Adam optimizer{{.learning_rate = 0.01f}};
  Function step = strategy.function([this](Array ids) {
    const Array loss = sum(square(table(ids) - 1.0f));
    optimizer.minimize(loss);
    return loss;
  });
  std::int64_t steps = 0;

  static Tensor ids(std::int64_t first) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 40; ++i) all.push_back((first + 7 * i) % kRows);
    return Tensor::of<std::int64_t>({40}, all);
  }
  float train() {
    const std::int64_t first = 11 * ++steps;
    const PerReplica each(std::vector<Array>{Array(ids(first)), Array(ids(first + 70))});
    return strategy.reduce(ReduceOp::kSum, strategy.run(step, {each})[0]).item<float>();
  }
  std::size_t variables_on(int gpu) { return strategy.driver(gpu).use().bytes(Use::kVariables); }
};

TEST_F(MirroredOnTwoGpus, EachHasACopyOfTheVariablesWithTheirSlots) {
  for (int i = 0; i < 5; ++i) train();
  const std::size_t with_slots = 3 * kRows * kDim * sizeof(float);
  for (int gpu : {0, 1}) EXPECT_GE(variables_on(gpu), with_slots) << gpu;
  // Gradients of rows met in the host's memory, and went from there to the table where it lies.
  EXPECT_EQ(strategy.store_of(0).updates(0), 5);
}

// As much is copied as there are ids and rows of their gradients, however large the table is.
TEST_F(MirroredOnTwoGpus, AStepCopiesNoTable) {
  for (int i = 0; i < 3; ++i) train();
  const std::size_t before = strategy.driver(1).counts().bytes_copied;
  train();
  EXPECT_LT(strategy.driver(1).counts().bytes_copied - before, kRows * kDim * sizeof(float) / 4);
}

TEST_F(MirroredOnTwoGpus, WhatIsReadAssignedAndRestoredIsWhatTheyHave) {
  tools::TempFolder folder;
  train();
  const Variable rows = table.variables().front();
  const std::string checkpoint = strategy.save({.folder = folder.path()});
  const Tensor saved = rows.read().eval();
  train();
  const Tensor later = rows.read().eval();
  EXPECT_NE(std::memcmp(saved.raw(), later.raw(), saved.bytes()), 0);

  rows.assign(ones_like(rows.read()));
  EXPECT_EQ(train(), 0.0f);

  strategy.restore(checkpoint);
  steps = 1;
  train();
  const Tensor again = rows.read().eval();
  EXPECT_EQ(std::memcmp(again.raw(), later.raw(), later.bytes()), 0);
}

// There the variables stay in the host's memory, and the other GPU has its copy all the same.
TEST_F(MirroredOnTwoGpus, OneWithoutRoomForTheTableHasItInTheHostsMemory) {
  strategy.driver(1).limit(300 << 10);
  for (int i = 0; i < 3; ++i) train();
  EXPECT_GE(variables_on(0), kRows * kDim * sizeof(float));
  EXPECT_LT(variables_on(1), kRows * kDim * sizeof(float));
  Read copies[] = {{0, {}, {}}, {0, {}, {}}};
  for (int i : {0, 1}) strategy.store_of(i).pull({}, {&copies[i], 1});
  EXPECT_EQ(std::memcmp(copies[0].value.raw(), copies[1].value.raw(), copies[0].value.bytes()), 0);
}

}  // namespace
}  // namespace cairn
