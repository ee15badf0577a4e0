#include "serving/follow/row_reader.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/base/error.h"
#include "tests/serving/follow/followed_ps.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr Duration kLong = 30s;

ps::TableConfig part_of(VariableId id, std::shared_ptr<const VariableSpec> spec, std::uint32_t part,
                        RowRange rows) {
  return {id, std::move(spec), ps::sgd(), {{part, rows}}};
}

// Two shards, each with half of a dense variable, and the first with a hashed one.
struct TwoShards {
  TwoShards() {
    first.configure({part_of(0, dense, 0, {0, 5}), hashed_table(1, "hashed")});
    first.open();
    second.configure({part_of(0, dense, 1, {5, 10})});
    second.open();
    push_rows(first, 1, 0, {1}, 2);
    push_rows(first, 2, 1, {1'000'000'000'000}, 2);
  }
  std::vector<float> read(RowReader& reader, const std::string& variable,
                          const std::vector<std::int64_t>& rows) {
    std::vector<float> out(rows.size() * 2, 77);
    const RowsWanted wanted{variable, rows, reinterpret_cast<std::byte*>(out.data())};
    last = reader.read({&wanted, 1}, kLong);
    return out;
  }

  std::shared_ptr<const VariableSpec> dense =
      ps::variable("dense", {10, 2}, Initializer::constant(3));
  FollowedPs cluster;
  ps::ShardClient first = cluster.client(0), second = cluster.client(1);
  RowsRead last;
};

TEST(RowReader, ReadsRowsOfAllShardsInTheOrderInWhichTheyAreAskedFor) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  EXPECT_THAT(ps.read(reader, "dense", {9, 1, 9, 0}), ElementsAre(3, 3, 4, 4, 3, 3, 3, 3));
  EXPECT_TRUE(ps.last.complete());
  EXPECT_EQ(ps.last.step, 2);
  EXPECT_EQ(reader.seed(), 42u);
  EXPECT_EQ(reader.variable("dense", kLong)->shape, ps.dense->shape);
  EXPECT_EQ(reader.variable("nothing", kLong), nullptr);
}

TEST(RowReader, AHashedRowThatIsNotThereReadsAsItsInitialValueAndIsNotMade) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  EXPECT_THAT(ps.read(reader, "hashed", {8, 1'000'000'000'000}), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(ps.cluster.server->counters(0).rows.load(), 5u + 1u);
}

TEST(RowReader, ReadsSeveralVariablesAtOnceAndManyRows) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  std::vector<std::int64_t> rows(300'000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i % 10);
  std::vector<float> out(rows.size() * 2);
  const std::int64_t hashed = 1'000'000'000'000;
  float one[2] = {};
  const RowsWanted wanted[] = {{"dense", rows, reinterpret_cast<std::byte*>(out.data())},
                               {"hashed", {&hashed, 1}, reinterpret_cast<std::byte*>(one)}};
  EXPECT_TRUE(reader.read(wanted, kLong).complete());
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(out[2 * i], rows[i] == 1 ? 4 : 3) << i;
  EXPECT_EQ(one[0], 1);
}

TEST(RowReader, SaysWhichRowsDidNotComeAndLeavesTheirPlaces) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  ps.read(reader, "dense", {1});
  ps.cluster.stop();
  bool missing = false;
  for (int i = 0; i < 100 && !missing; ++i) {
    const std::vector<float> out = ps.read(reader, "dense", {1, 9});
    missing = ps.last.missing.at(0) == std::vector<std::size_t>{0, 1};
    if (missing) {
      EXPECT_EQ(out[0], 77);
    }
  }
  EXPECT_TRUE(missing);
}

TEST(RowReader, ATableThatIsMadeMeanwhileCostsNoRow) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  ps.read(reader, "dense", {1});
  ps.first.configure({hashed_table(2, "another")});
  EXPECT_THAT(ps.read(reader, "dense", {1}), ElementsAre(4, 4));
  EXPECT_TRUE(ps.last.complete());
  EXPECT_NE(reader.variable("another", kLong), nullptr);
}

TEST(RowReader, RefusesRowsAndVariablesThatAreNotThere) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  EXPECT_THROW(ps.read(reader, "dense", {10}), InvalidArgumentError);
  EXPECT_THROW(ps.read(reader, "dense", {-1}), InvalidArgumentError);
  EXPECT_THROW(ps.read(reader, "danse", {1}), NotFoundError);
}

TEST(RowReader, ServesSeveralThreads) {
  TwoShards ps;
  RowReader reader(ps.cluster.options());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (std::int64_t row = 0; row < 8; ++row)
    threads.emplace_back([&, row] {
      for (int i = 0; i < 100; ++i) {
        float out[2] = {};
        const RowsWanted wanted{"dense", {&row, 1}, reinterpret_cast<std::byte*>(out)};
        if (reader.read({&wanted, 1}, kLong).complete() && out[0] == (row == 1 ? 4 : 3)) ++right;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 800);
}

TEST(RowReader, IsRefusedByAnotherCluster) {
  FollowedPs cluster;
  RowStreamOptions options = cluster.options();
  options.cluster = "another";
  RowReader reader(options);
  const std::int64_t row = 0;
  const RowsWanted wanted{"dense", {&row, 1}, nullptr};
  EXPECT_THROW(reader.read({&wanted, 1}, kLong), FailedPreconditionError);
}

TEST(RowReader, WaitsNoLongerThanItIsToldForAPsThatIsAway) {
  RowReader reader({.ps = {"127.0.0.1:1"}});
  const std::int64_t row = 0;
  const RowsWanted wanted{"dense", {&row, 1}, nullptr};
  EXPECT_EQ(reader.read({&wanted, 1}, 50ms).missing.at(0).size(), 1u);
}

}  // namespace
}  // namespace cairn::serving
