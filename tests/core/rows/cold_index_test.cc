#include "core/rows/cold_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn {
namespace {

using Found = std::vector<ColdIndex::Place>;

Found found(const ColdIndex& index, std::uint64_t hash) {
  Found places;
  index.find(hash, [&](ColdIndex::Place place) { places.push_back(place); });
  return places;
}
bool finds(const ColdIndex& index, std::uint64_t hash, ColdIndex::Place place) {
  const Found places = found(index, hash);
  return std::find(places.begin(), places.end(), place) != places.end();
}

TEST(ColdIndex, AnswersWithThePlacesOfAHash) {
  ColdIndex index;
  EXPECT_EQ(found(index, 17), Found{});
  EXPECT_FALSE(index.remove(17, 1));
  index.add(17, 0);
  index.add(17, 5);  // of another id with this hash
  index.add(~std::uint64_t{0}, ColdIndex::kPlacesMax - 1);
  EXPECT_TRUE(finds(index, 17, 0));
  EXPECT_TRUE(finds(index, 17, 5));
  EXPECT_EQ(found(index, ~std::uint64_t{0}), Found{ColdIndex::kPlacesMax - 1});
  EXPECT_TRUE(index.move(17, 0, 9));
  EXPECT_FALSE(index.move(17, 0, 9));
  EXPECT_TRUE(index.remove(17, 5));
  EXPECT_EQ(found(index, 17), Found{9});
  EXPECT_EQ(index.size(), 2u);
  EXPECT_THROW(index.add(1, ColdIndex::kPlacesMax), ResourceExhaustedError);
  index.clear();
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(found(index, 17), Found{});
}

TEST(ColdIndex, ARowTakesEightBytesAtMostAndAnAbsentOneIsHardlyEverLookedFor) {
  ColdIndex index;
  constexpr std::uint64_t kRows = 300'000;
  std::size_t most = 0;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    index.add(mix_bits(row + 1), static_cast<ColdIndex::Place>(row));
    // Below that, the pages of its tables are more than the rows.
    if (row > 150'000) most = std::max(most, (index.bytes() - 256 * 4096) * 1000 / (row + 1));
  }
  EXPECT_LE(most, 8000u);
  int looks = 0;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(finds(index, mix_bits(row + 1), static_cast<ColdIndex::Place>(row))) << row;
    looks += static_cast<int>(found(index, mix_bits(row + 1 + kRows)).size());
  }
  EXPECT_LE(looks, 60);  // expected: a row in 28,633, that is 10
}

// With hashes that are spread, and such as crowd in one place, where the last table's end is met.
TEST(ColdIndex, AnswersAsAMapDoes) {
  for (const std::uint64_t crowd : {std::uint64_t{0}, ~std::uint64_t{0} << 40}) {
    ColdIndex index;
    std::multimap<std::uint64_t, ColdIndex::Place> places;
    Random random(crowd + 1);
    const auto any = [&] { return mix_bits(random.below(8'000) + 1) | crowd; };
    ColdIndex::Place next = 0;
    for (int round = 0; round < 30'000; ++round) {
      const std::uint64_t hash = any();
      const auto entry = places.find(hash);
      if (entry == places.end() || random.below(10) == 0) {
        index.add(hash, next);
        places.emplace(hash, next++);
      } else if (random.below(3) == 0) {
        ASSERT_TRUE(index.move(hash, entry->second, next));
        entry->second = next++;
      } else {
        ASSERT_TRUE(index.remove(hash, entry->second));
        places.erase(entry);
      }
      ASSERT_EQ(index.size(), places.size());
      const std::uint64_t other = any();
      for (auto [at, end] = places.equal_range(other); at != end; ++at)
        ASSERT_TRUE(finds(index, other, at->second)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace cairn
