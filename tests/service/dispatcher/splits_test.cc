#include "service/dispatcher/splits.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"

namespace cairn::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The values of all tasks, task after task.
std::vector<std::int64_t> values_of(const Dataset& dataset, const SplitPlan& plan) {
  std::vector<std::int64_t> all;
  for (std::int64_t task = 0; task < plan.tasks(); ++task) {
    const auto it = open(dataset_of(dataset, plan.piece(task), ProcessingMode::kDynamic));
    while (auto element = it->next()) {
      const auto values = element->at(0).values<std::int64_t>();
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

std::string refusal(const Dataset& dataset) {
  try {
    plan_splits(dataset);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Splits, ARangeIsCutIntoWholeBatches) {
  const Dataset dataset = Dataset::range(7).batch(2);
  const SplitPlan plan = plan_splits(dataset);
  EXPECT_EQ(plan.each, 2);
  EXPECT_EQ(plan.tasks(), 4);
  EXPECT_THAT(values_of(dataset, plan), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(Splits, BatchesOfBatchesAndThoseAfterAnUnbatchAreWholeToo) {
  const Dataset all = Dataset::range(10'000);
  EXPECT_EQ(plan_splits(all.batch(4).batch(50)).each, 200);
  EXPECT_EQ(plan_splits(all.batch(6).unbatch().batch(40)).each, 120);
  EXPECT_EQ(plan_splits(all.window(7)).each % 7, 0);
  EXPECT_EQ(plan_splits(all.batch(1 << 30).batch(1 << 30)).tasks(), 1);
  const Dataset filtered =
      all.filter([](const Features& row) { return row["value"] == Array(std::int64_t{3}); });
  EXPECT_THAT(values_of(filtered, plan_splits(filtered)), ElementsAre(3));
}

TEST(Splits, ALongRangeIsCutIntoSome128) {
  const SplitPlan plan = plan_splits(Dataset::range(1'000'000).batch(32));
  EXPECT_GE(plan.tasks(), 120);
  EXPECT_LE(plan.tasks(), 130);
  EXPECT_EQ(plan.each % 32, 0);
  EXPECT_GE(plan_splits(Dataset::range(INT64_MAX / 16).batch(1)).tasks(), 128);
}

TEST(Splits, ASplitIsNotShorterThanAShufflesBuffer) {
  EXPECT_GE(plan_splits(Dataset::range(10'000).shuffle(1'000).batch(8)).each, 1'000);
  EXPECT_EQ(plan_splits(Dataset::range(100).shuffle(INT64_MAX).batch(8)).tasks(), 1);
}

TEST(Splits, EachPassAndSplitHasAnOrderOfItsOwn) {
  const Dataset dataset = Dataset::range(64).shuffle(32, 7).repeat(2).batch(4);
  const SplitPlan plan = plan_splits(dataset);
  ASSERT_EQ(plan.tasks(), 4);
  std::vector<std::int64_t> all = values_of(dataset, plan);
  const std::vector<std::int64_t> first(all.begin(), all.begin() + 64),
      second(all.begin() + 64, all.end());
  EXPECT_NE(first, second);
  EXPECT_EQ(values_of(dataset, plan), all) << "a task that is dealt again is the same";
  std::ranges::sort(all);
  for (std::int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(2 * i)], i);
    EXPECT_EQ(all[static_cast<std::size_t>(2 * i + 1)], i);
  }
}

TEST(Splits, FilesAreSplits) {
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    paths.push_back(::testing::TempDir() + str("splits_", i, ".csv"));
    std::ofstream(paths.back()) << 10 * i << "\n" << 10 * i + 1 << "\n";
  }
  const Dataset dataset =
      Dataset::csv(paths, CsvSchema{.columns = {{"value", DType::kInt64}}}).repeat(2).batch(4);
  const SplitPlan plan = plan_splits(dataset);
  EXPECT_EQ(plan.of, Piece::Of::kFile);
  EXPECT_EQ(plan.tasks(), 6);
  EXPECT_THAT(values_of(dataset, plan), ElementsAre(0, 1, 10, 11, 20, 21, 0, 1, 10, 11, 20, 21));
  for (const std::string& path : paths) std::remove(path.c_str());
}

TEST(Splits, WithoutEndThePassesGoOn) {
  const SplitPlan plan = plan_splits(Dataset::range(10).repeat().batch(5));
  EXPECT_EQ(plan.tasks(), -1);
  EXPECT_EQ(plan.piece(1'000'003).begin, 5);
  EXPECT_EQ(plan_splits(Dataset::range(0).repeat().batch(5)).tasks(), 0);
  EXPECT_EQ(plan_splits(Dataset::range(10).repeat(0).batch(5)).tasks(), 0);
}

TEST(Splits, WhatCountsOverAllElementsIsRefusedByName) {
  const Dataset all = Dataset::range(10);
  EXPECT_THAT(refusal(all.take(3).batch(2)), HasSubstr("take()"));
  EXPECT_THAT(refusal(all.batch(2).skip(1)), HasSubstr("skip()"));
  EXPECT_THAT(refusal(all.shard(2, 0).batch(2)), HasSubstr("shard()"));
  EXPECT_THAT(refusal(all.concatenate(all)), HasSubstr("made of several"));
  EXPECT_THAT(refusal(all.window(3, {.shift = 1})), HasSubstr("window() whose windows overlap"));
  EXPECT_THAT(refusal(all.batch(2).deal(2, Deal::kCut)), HasSubstr("deal()"));
}

}  // namespace
}  // namespace cairn::service
