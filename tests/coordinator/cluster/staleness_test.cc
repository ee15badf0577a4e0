#include "coordinator/cluster/staleness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cairn {
namespace {

std::vector<std::vector<std::uint64_t>> rows(const StalenessHistogram& histogram) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const auto& bucket : histogram.buckets())
    all.push_back({bucket.from, bucket.to, bucket.updates});
  return all;
}

TEST(Staleness, BucketsArePowersOfTwoUpToTheMaximum) {
  StalenessHistogram histogram;
  EXPECT_TRUE(histogram.buckets().empty());
  EXPECT_EQ(histogram.quantile(0.99), 0u);
  for (const std::uint64_t staleness : {0, 0, 1, 2, 3, 4, 5}) histogram.add(staleness);
  EXPECT_EQ(rows(histogram),
            (std::vector<std::vector<std::uint64_t>>{{0, 0, 2}, {1, 1, 1}, {2, 3, 2}, {4, 5, 2}}));
  EXPECT_EQ(histogram.max(), 5u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 15.0 / 7);
}

TEST(Staleness, AQuantileIsTheEndOfItsBucket) {
  StalenessHistogram histogram;
  for (int i = 0; i < 98; ++i) histogram.add(1);
  histogram.add(6);
  histogram.add(100);
  EXPECT_EQ(histogram.quantile(0.5), 1u);
  EXPECT_EQ(histogram.quantile(0.99), 7u);
  EXPECT_EQ(histogram.quantile(1), 100u);
}

TEST(Staleness, AnyNumberHasABucket) {
  StalenessHistogram histogram;
  histogram.add(std::numeric_limits<std::uint64_t>::max());
  ASSERT_EQ(histogram.buckets().size(), 65u);
  EXPECT_EQ(histogram.buckets().back().to, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(histogram.buckets().back().from, std::uint64_t{1} << 63);
}

}  // namespace
}  // namespace cairn
