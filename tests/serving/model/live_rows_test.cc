// Rows that change while they are read.
#include "serving/model/live_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace cairn::serving::live_rows_testing {
namespace {

constexpr std::int64_t kRows = 1000, kDim = 16;
constexpr std::uint64_t kSeed = 7;

VariableSpec table(bool hashed) {
  VariableSpec spec{.name = "table", .shape = {kRows, kDim}, .hashed = hashed};
  spec.initializer = Initializer::uniform(-1, 1);
  return spec;
}

using Row = std::vector<float>;

Row read(const LiveRows& rows, std::int64_t row) {
  Row values(kDim);
  std::vector<std::int64_t> scratch;
  rows.read({&row, 1}, reinterpret_cast<std::byte*>(values.data()), scratch);
  return values;
}

Row initial(bool hashed, std::int64_t row, std::uint64_t seed = kSeed) {
  Row values(kDim);
  initialize_rows(table(hashed), seed, row, 1, kDim, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

void put(LiveRows& rows, std::int64_t row, float value) {
  const Row values(kDim, value);
  rows.put({&row, 1}, reinterpret_cast<const std::byte*>(values.data()));
}

struct LiveRowsTest : ::testing::TestWithParam<bool> {
  std::shared_ptr<ReadCounters> counters = std::make_shared<ReadCounters>();
  LiveRows rows{table(GetParam()), kSeed, counters};
};
INSTANTIATE_TEST_SUITE_P(DenseAndHashed, LiveRowsTest, ::testing::Bool());

TEST_P(LiveRowsTest, ARowIsWhatWasPutLastAndItsInitialValueOtherwise) {
  EXPECT_EQ(read(rows, 3), initial(GetParam(), 3));
  put(rows, 3, 1);
  put(rows, 3, 2);
  EXPECT_EQ(read(rows, 3), Row(kDim, 2));
  EXPECT_EQ(read(rows, 4), initial(GetParam(), 4));
  const std::int64_t row = 3;
  rows.drop({&row, 1});
  EXPECT_EQ(read(rows, 3), initial(GetParam(), 3));
  put(rows, 3, 5);
  EXPECT_EQ(read(rows, 3), Row(kDim, 5));
}

TEST_P(LiveRowsTest, MoreRowsThanItHadRoomForAreThere) {
  std::map<std::int64_t, float> wanted;
  for (std::int64_t row = 0; row < kRows; ++row) put(rows, row, wanted[row] = 0.5f + row);
  for (const auto& [row, value] : wanted) ASSERT_EQ(read(rows, row), Row(kDim, value)) << row;
}

TEST_P(LiveRowsTest, WhileAShardBeginsAnewItsOldRowsAreReadAndThenThoseThatDidNotComeAreInitial) {
  put(rows, 1, 1);
  put(rows, 2, 2);
  put(rows, 600, 3);
  rows.begin({0, 500}, table(GetParam()).initializer, kSeed + 1);
  put(rows, 2, 4);
  put(rows, 7, 5);
  EXPECT_EQ(read(rows, 1), Row(kDim, 1));
  rows.complete({0, 500});
  EXPECT_EQ(read(rows, 1), initial(GetParam(), 1, kSeed + 1));
  EXPECT_EQ(read(rows, 2), Row(kDim, 4));
  EXPECT_EQ(read(rows, 7), Row(kDim, 5));
  EXPECT_EQ(read(rows, 600), Row(kDim, 3));  // another shard's
}

TEST_P(LiveRowsTest, InitialValuesAreThoseOfTheRunAndNotOfTheModelThatWasSavedWithAllRows) {
  VariableSpec saved = table(GetParam());
  saved.initializer = {};
  LiveRows followed(saved, 1, counters);
  followed.begin({0, kRows}, table(GetParam()).initializer, kSeed);
  put(followed, 3, 2);
  followed.complete({0, kRows});
  EXPECT_EQ(read(followed, 3), Row(kDim, 2));
  EXPECT_EQ(read(followed, 4), initial(GetParam(), 4));
}

TEST_P(LiveRowsTest, AReaderSeesEachRowWholeWhileAnotherThreadChangesIt) {
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int round = 0; round < 2000; ++round) {
      for (std::int64_t row = 0; row < 8; ++row) put(rows, row, static_cast<float>(round));
      if (round % 100 == 50) {
        rows.begin({0, kRows}, table(GetParam()).initializer, kSeed);
        const std::int64_t gone = 5;
        rows.drop({&gone, 1});
        rows.complete({0, kRows});
      }
    }
    done = true;
  });
  std::size_t torn = 0, reads = 0;
  do {
    for (std::int64_t row = 0; row < 8; ++row, ++reads) {
      const Row values = read(rows, row);
      if (values != Row(kDim, values.front()) && values != initial(GetParam(), row)) ++torn;
    }
  } while (!done);
  writer.join();
  EXPECT_EQ(torn, 0u) << "of " << reads;
}

TEST(LiveRows, AVariableThatIsReadAsAWholeHasTheNewestRows) {
  LiveRows rows(table(false), kSeed, std::make_shared<ReadCounters>());
  put(rows, 2, 9);
  const Tensor before = rows.whole();
  put(rows, 3, 8);
  const Tensor after = rows.whole();
  EXPECT_EQ(before.values<float>()[3 * kDim], initial(false, 3)[0]);
  EXPECT_EQ(after.values<float>()[2 * kDim], 9);
  EXPECT_EQ(after.values<float>()[3 * kDim], 8);
}

TEST(LiveRows, IdsThatAHashedTableHasNoRowForAreCounted) {
  const auto counters = std::make_shared<ReadCounters>();
  LiveRows rows(table(true), kSeed, counters);
  put(rows, 2, 9);
  read(rows, 2);
  read(rows, 3);
  read(rows, 3);
  EXPECT_EQ(counters->unknown_ids, 2u);
}

}  // namespace
}  // namespace cairn::serving::live_rows_testing
