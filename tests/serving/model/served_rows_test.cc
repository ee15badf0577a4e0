// Rows of served versions: equal rows are in memory once, and places are used again when the last
// version that read them has ended.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "core/base/error.h"
#include "serving/model/served_rows.h"

namespace cairn::serving::testing {
namespace {

constexpr std::int64_t kRows = 100, kDim = 4;

std::shared_ptr<const VariableSpec> table(bool hashed) {
  VariableSpec spec{.name = "table", .shape = {kRows, kDim}, .hashed = hashed};
  spec.initializer = Initializer::uniform(-1, 1);
  return std::make_shared<VariableSpec>(spec);
}

using Values = std::map<std::int64_t, float>;  // a row has its value in all of its columns

std::shared_ptr<const ServedRows> rows_of(const Values& values, bool hashed,
                                          std::shared_ptr<const ServedRows> before = nullptr) {
  PooledRowsBuilder builder(table(hashed), 7, std::move(before));
  for (const auto& [row, value] : values) {
    const std::vector<float> all(kDim, value);
    builder.put(row, reinterpret_cast<const std::byte*>(all.data()));
  }
  return builder.finish();
}

std::vector<float> read(const ServedRows& rows, std::int64_t row) {
  std::vector<float> values(kDim);
  std::vector<std::int64_t> scratch;
  rows.read({&row, 1}, reinterpret_cast<std::byte*>(values.data()), scratch);
  return values;
}

void expect_rows(const ServedRows& rows, const Values& values, bool hashed) {
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<float> wanted(kDim);
    initialize_rows(*table(hashed), 7, row, 1, kDim, reinterpret_cast<std::byte*>(wanted.data()));
    if (const auto found = values.find(row); found != values.end())
      wanted.assign(kDim, found->second);
    ASSERT_EQ(read(rows, row), wanted) << "row " << row;
  }
}

struct PooledRowsTest : ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DenseAndHashed, PooledRowsTest, ::testing::Bool());

TEST_P(PooledRowsTest, RowsThatDidNotComeHaveTheirInitialValues) {
  expect_rows(*rows_of({{3, 1.f}, {50, 2.f}}, GetParam()), {{3, 1.f}, {50, 2.f}}, GetParam());
  expect_rows(*rows_of({}, GetParam()), {}, GetParam());
}

TEST_P(PooledRowsTest, AVersionSharesTheRowsThatAreEqualInTheOneBefore) {
  Values values;
  for (std::int64_t row = 0; row < kRows; ++row) values[row] = static_cast<float>(row);
  const auto first = rows_of(values, GetParam());
  EXPECT_EQ(first->shared_bytes(), 0u);
  Values changed = values;
  changed[10] = -1.f;
  changed[90] = -2.f;
  const auto second = rows_of(changed, GetParam(), first);
  EXPECT_EQ(second->shared_bytes(), (kRows - 2) * kDim * sizeof(float));
  expect_rows(*first, values, GetParam());
  expect_rows(*second, changed, GetParam());
}

// A rolling change of one row in ten, by seed: whatever versions are alive read their own rows, and
// memory does not grow with the number of versions.
TEST_P(PooledRowsTest, VersionsReadTheirOwnRowsWhicheverOfThemAreAlive) {
  std::mt19937 random(GetParam() ? 11 : 12);
  struct Version {
    std::shared_ptr<const ServedRows> rows;
    Values values;
  };
  std::vector<Version> alive;
  Values values;
  for (int version = 0; version < 200; ++version) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      if (random() % 10 != 0) continue;
      if (random() % 4 == 0)
        values.erase(row);
      else
        values[row] = static_cast<float>(random() % 1000);
    }
    alive.push_back(
        {rows_of(values, GetParam(), alive.empty() ? nullptr : alive.back().rows), values});
    // Any but the newest may end, in any order; at most four stay.
    while (alive.size() > 1 && (alive.size() > 4 || random() % 2 == 0))
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(random() % (alive.size() - 1)));
    for (const Version& each : alive) expect_rows(*each.rows, each.values, GetParam());
  }
}

TEST_P(PooledRowsTest, AVersionThatIsNotFinishedLeavesNothing) {
  const auto first = rows_of({{1, 1.f}}, GetParam());
  for (int i = 0; i < 1000; ++i) {
    PooledRowsBuilder builder(table(GetParam()), 7, first);
    const std::vector<float> all(kDim, static_cast<float>(i));
    builder.put(5, reinterpret_cast<const std::byte*>(all.data()));
  }
  const auto second = rows_of({{1, 1.f}, {5, 5.f}}, GetParam(), first);
  expect_rows(*second, {{1, 1.f}, {5, 5.f}}, GetParam());
}

// The rows that a version replaces belong to those that read them, so only one may follow another
// in its memory.
TEST_P(PooledRowsTest, ASecondVersionAfterTheSameOneHasMemoryOfItsOwn) {
  const auto first = rows_of({{1, 1.f}}, GetParam());
  const auto second = rows_of({{1, 2.f}}, GetParam(), first);
  const auto other = rows_of({{1, 3.f}}, GetParam(), first);
  EXPECT_EQ(other->shared_bytes(), 0u);
  expect_rows(*first, {{1, 1.f}}, GetParam());
  expect_rows(*second, {{1, 2.f}}, GetParam());
  expect_rows(*other, {{1, 3.f}}, GetParam());
}

TEST(RowPoolTest, PlacesThatWereGivenBackAreUsedAgain) {
  RowPool pool(16, 2);
  const std::uint32_t a = pool.take();
  pool.take();
  EXPECT_THROW(pool.take(), ResourceExhaustedError);
  pool.give({a});
  EXPECT_EQ(pool.take(), a);
}

}  // namespace
}  // namespace cairn::serving::testing
