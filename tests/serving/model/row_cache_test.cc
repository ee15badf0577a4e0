// The cache for rows that are read from disk, and the memory that it shares with versions.
#include "serving/model/row_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "serving/model/memory_budget.h"

namespace cairn::serving::testing {
namespace {

constexpr std::size_t kMb = std::size_t{1} << 20;

void put(RowCache& cache, std::uint32_t table, std::int64_t row) {
  const std::int64_t values[2] = {row, table};
  cache.put(table, row, RowCache::Kind::kOwn, reinterpret_cast<const std::byte*>(values));
}

// Whether the cache has the row; it must be the right one.
bool has(const RowCache& cache, std::uint32_t table, std::int64_t row) {
  std::int64_t values[2] = {-1, -1};
  std::vector<std::int64_t> missed;
  cache.read(table, {&row, 1}, reinterpret_cast<std::byte*>(values), missed);
  const bool found = missed.empty();
  EXPECT_TRUE(!found || (values[0] == row && values[1] == table)) << row;
  return found;
}

TEST(RowCacheTest, RowsOfSeveralTablesAreKeptApart) {
  RowCache cache(16);
  cache.resize(kMb);
  put(cache, 1, 7);
  put(cache, 2, 7);
  put(cache, 2, -7);  // ids of hashed tables are any numbers
  EXPECT_TRUE(has(cache, 1, 7) && has(cache, 2, 7) && has(cache, 2, -7));
  EXPECT_FALSE(has(cache, 1, -7) || has(cache, 3, 7) || has(cache, 1, 8));
}

TEST(RowCacheTest, AnyMixOfReadsAndWritesGivesTheRowsThatWereWritten) {
  RowCache cache(16);
  cache.resize(20'000);
  std::mt19937_64 random(3);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto table = static_cast<std::uint32_t>(random() % 3);
    const auto row = static_cast<std::int64_t>(random() % 600);
    if (has(cache, table, row))
      ++hits;
    else
      put(cache, table, row);
  }
  EXPECT_GT(hits, 10'000);
  EXPECT_LT(hits, 60'000);
}

// A scan of rows that are read once must not drive out those that are read all the time.
TEST(RowCacheTest, RowsThatAreReadOftenStay) {
  RowCache cache(16);
  cache.resize(40'000);
  std::int64_t scanned = 1'000'000, missed = 0;
  for (int round = 0; round < 200; ++round) {
    for (std::int64_t row = 0; row < 300; ++row)
      if (!has(cache, 1, row)) {
        put(cache, 1, row);
        missed += round > 5;
      }
    for (int i = 0; i < 300; ++i) put(cache, 1, ++scanned);
  }
  EXPECT_LT(missed, 195 * 300 / 100);  // 1 %
}

TEST(RowCacheTest, SaysHowManyRowsAreInitialValues) {
  RowCache cache(8);
  cache.resize(kMb);
  const std::int64_t value = 3;
  for (std::int64_t row = 0; row < 10; ++row)
    cache.put(1, row, row < 4 ? RowCache::Kind::kInitial : RowCache::Kind::kOwn,
              reinterpret_cast<const std::byte*>(&value));
  std::vector<std::int64_t> rows{0, 1, 2, 3, 4, 5, 20, 0}, out(8), missed;
  EXPECT_EQ(cache.read(1, rows, reinterpret_cast<std::byte*>(out.data()), missed), 5u);
  EXPECT_EQ(missed, std::vector<std::int64_t>{6});
}

TEST(RowCacheTest, HasTheMemoryThatItWasGivenAndNoMore) {
  RowCache cache(128);
  for (const std::size_t bytes : {10 * kMb, kMb, std::size_t{100}, std::size_t{0}, 3 * kMb}) {
    cache.resize(bytes);
    EXPECT_LE(cache.bytes(), bytes);
    EXPECT_GE(cache.bytes() + 4096, bytes > 4096 ? bytes : 0);
    EXPECT_FALSE(has(cache, 1, 1));
  }
}

// ---- what versions and caches share ----

TEST(MemoryBudgetTest, ASwapKeepsTheCacheAndStaysWithinTheLimit) {
  const auto memory = MemoryBudget::make(200 * kMb);
  const auto within = [&] {
    return memory->cache_bytes() + memory->held_bytes() + MemoryBudget::kProcessBytes <=
           memory->limit();
  };
  auto version = memory->hold(20 * kMb, {{16, 1000 * kMb}}, "a version");
  const auto cache = version->cache(16);
  put(*cache, 1, 5);
  const std::size_t bytes = memory->cache_bytes();
  EXPECT_GT(bytes, 100 * kMb);
  for (int swap = 0; swap < 10; ++swap) {
    auto next = memory->hold(20 * kMb, {{16, 1000 * kMb}}, "the next one");
    EXPECT_TRUE(within());
    EXPECT_EQ(next->cache(16), cache);
    version = std::move(next);
    EXPECT_TRUE(within());
    EXPECT_EQ(memory->cache_bytes(), bytes);
    EXPECT_TRUE(has(*cache, 1, 5));
  }
  // One that needs more takes it from the cache.
  const auto other = memory->hold(100 * kMb, {}, "another model");
  EXPECT_TRUE(within());
  EXPECT_LT(memory->cache_bytes(), 40 * kMb);
}

TEST(MemoryBudgetTest, RowsOfSeveralSizesShareTheMemoryAsTheirTablesDo) {
  const auto memory = MemoryBudget::make(200 * kMb);
  const auto version = memory->hold(0, {{16, 300 * kMb}, {64, 100 * kMb}}, "a version");
  const double small = static_cast<double>(version->cache(16)->bytes());
  EXPECT_NEAR(small / static_cast<double>(memory->cache_bytes()), 0.75, 0.01);
  EXPECT_NEAR(static_cast<double>(memory->cache_bytes()), 152.0 * kMb, 1.0 * kMb);
}

}  // namespace
}  // namespace cairn::serving::testing
