#include "core/rows/unique_ids.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/random.h"

namespace cairn {
namespace {

void expect_unique(std::int64_t n, std::int64_t bound, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound))));
  std::set<std::int64_t> want(ids.begin(), ids.end());
  UniqueIds unique;
  unique.add(ids.data(), n);
  ASSERT_EQ(unique.first_outside(bound), -1);
  unique.find(bound);
  EXPECT_EQ(std::vector<std::int64_t>(unique.unique().begin(), unique.unique().end()),
            std::vector<std::int64_t>(want.begin(), want.end()));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(unique.unique()[static_cast<std::size_t>(unique.inverse()[i])], ids[i]) << i;
}

// A few rows (bitmap), many rows for few ids (radix sort), and bounds at the edges of words and
// digits.
TEST(UniqueIds, AreAscendingDistinctAndFoundAgain) {
  std::uint64_t seed = 1;
  for (std::int64_t bound : {1, 63, 64, 65, 1000, 28'000, 2'000'000, 1 << 22})
    for (std::int64_t n : {0, 1, 7, 2560}) {
      SCOPED_TRACE(str(n, " ids below ", bound));
      expect_unique(n, bound, seed++);
    }
  expect_unique(53'248, 10'569'296, seed);
  expect_unique(40, std::int64_t{1} << 40, seed);
}

TEST(UniqueIds, BothWidthsMixAndTheMemoryIsUsedAgain) {
  UniqueIds unique;
  for (int round = 0; round < 3; ++round) {
    std::int32_t narrow[] = {5, 2, 5};
    std::int64_t wide[] = {2, 9};
    unique.clear();
    unique.add(narrow, 3);
    unique.add(wide, 2);
    unique.find(10);
    Tensor tensor = unique.tensor();
    EXPECT_EQ(std::vector<std::int64_t>(tensor.values<std::int64_t>().begin(),
                                        tensor.values<std::int64_t>().end()),
              (std::vector<std::int64_t>{2, 5, 9}));
  }
}

TEST(UniqueIds, TheFirstOneOutsideIsFound) {
  std::int64_t ids[] = {3, -1, 10};
  UniqueIds unique;
  unique.add(ids, 3);
  EXPECT_EQ(unique.first_outside(10), 1);
  EXPECT_EQ(unique.id(1), -1);
}

}  // namespace
}  // namespace cairn
