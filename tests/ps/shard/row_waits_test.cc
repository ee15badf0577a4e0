// Requests for rows that are elsewhere: what waits, what goes by, and in which order.
#include "ps/shard/row_waits.h"

#include <gmock/gmock.h>

#include "core/base/random.h"
#include "tests/ps/shard/row_waits_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(RowWaitsTest, APullOfRowsThatAreElsewhereWaitsForThemAndOthersGoBy) {
  source.hold("a", 3, 30);
  const auto waits = pull({1, 3});
  EXPECT_TRUE(waits->waits());
  EXPECT_THAT(*pull({1, 2})->rows, ElementsAre(0, 0));
  EXPECT_FALSE(push(shard.step(1), {1}, 7)->waits());
  ASSERT_THAT(source.fetching, SizeIs(1));
  EXPECT_THAT(source.fetching[0].rows, ElementsAre(3));

  source.release();
  EXPECT_THAT(*waits->rows, ElementsAre(7, 30));  // as the rows are in its turn
  EXPECT_FALSE(pull({3})->waits());
}

TEST_F(RowWaitsTest, APushThatWaitsHasDoneNothingYetAndLaterAllOfIt) {
  source.hold("a", 3, 30);
  const auto waits = push(shard.step(1), {1, 3}, 5, 0, {RuleKind::kAssignAdd, {}});
  EXPECT_TRUE(waits->waits());
  EXPECT_EQ(shard.shard.version().counter, 0u);
  EXPECT_THAT(shard.pull(0, {1}), ElementsAre(0));

  source.release();
  EXPECT_EQ(waits->pushed->version.counter, 1u);
  EXPECT_THAT(*pull({1, 3})->rows, ElementsAre(5, 35));
}

TEST_F(RowWaitsTest, TwoUpdatesOfARowApplyInTheOrderInWhichTheyCame) {
  source.hold("a", 3, 30);
  const auto first = push(shard.step(1), {3, 5}, 1), second = push(shard.step(2), {5}, 2),
             other = push(shard.step(3), {6}, 3);
  EXPECT_TRUE(first->waits() && second->waits());  // nothing of the second is elsewhere
  EXPECT_FALSE(other->waits());
  source.release();
  EXPECT_EQ(first->pushed->version.counter, 2u);
  EXPECT_EQ(second->pushed->version.counter, 3u);
  EXPECT_THAT(*pull({3, 5, 6})->rows, ElementsAre(1, 2, 3));
}

TEST_F(RowWaitsTest, AReadSeesTheUpdatesThatCameBeforeItAndHoldsUpNone) {
  source.hold("a", 3, 30);
  const auto before = pull({3, 5}), update = push(shard.step(1), {3, 5}, 1), after = pull({5});
  EXPECT_TRUE(after->waits());
  source.hold("a", 4, 40);
  const auto reader = pull({4, 6});
  EXPECT_FALSE(push(shard.step(2), {6}, 2)->waits());

  source.release_all();
  EXPECT_THAT(*before->rows, ElementsAre(30, 0));
  EXPECT_THAT(*after->rows, ElementsAre(1));
  EXPECT_THAT(*reader->rows, ElementsAre(40, 2));
}

TEST_F(RowWaitsTest, WhatReadsOrChangesEveryRowWaitsForEachOfThem) {
  source.hold("b", 3, 30);
  const auto read = pull_whole(1), table_rule = push(shard.step(1), {1}, 1, 1, adam()),
             behind = push(shard.step(2), {7}, 9, 1);
  EXPECT_TRUE(read->waits() && table_rule->waits() && behind->waits());
  EXPECT_FALSE(pull({1})->waits());  // of the other variable
  source.release();
  EXPECT_EQ(read->rows->at(3), 30);
  EXPECT_TRUE(table_rule->pushed.has_value());
  EXPECT_THAT(*pull({7}, 1)->rows, ElementsAre(9));
}

TEST_F(RowWaitsTest, ARowIsFetchedOnceForAllThatWaitForIt) {
  source.hold("a", 3, 30);
  const auto first = pull({3}), second = pull({3, 4});
  EXPECT_THAT(source.fetching, SizeIs(1));
  source.release();
  EXPECT_FALSE(first->waits() || second->waits());
}

TEST_F(RowWaitsTest, WhatIsSentAgainWhileItWaitsIsAppliedOnce) {
  source.hold("a", 3, 30);
  const UpdateRule add{RuleKind::kAssignAdd, {}};
  const auto first = push(shard.step(1), {3}, 1, 0, add),
             again = push(shard.step(1), {3}, 1, 0, add),
             elsewhere = push(shard.step(1, 0, 2), {4}, 1, 0, add);  // a run with other rows
  EXPECT_FALSE(elsewhere->pushed->duplicate);
  source.release();
  EXPECT_TRUE(first->pushed->duplicate && again->pushed->duplicate);
  EXPECT_THAT(*pull({3, 4})->rows, ElementsAre(30, 1));
  EXPECT_EQ(shard.shard.version().counter, 1u);

  source.hold("a", 5, 50);
  const auto third = push(shard.step(2), {5}, 1, 0, add),
             fourth = push(shard.step(2), {5}, 1, 0, add);
  source.release();
  EXPECT_FALSE(third->pushed->duplicate);
  EXPECT_TRUE(fourth->pushed->duplicate);
  EXPECT_THAT(*pull({5})->rows, ElementsAre(51));
}

TEST_F(RowWaitsTest, APushInPiecesWaitsAsAWholeFromItsLastPieceOn) {
  source.hold("a", 3, 30);
  const UpdateHeader header{0, 0, 1, false, kSet, 1};
  const Floats one{1};
  auto piece = [&](std::uint32_t number, std::int64_t row) {
    PushRequest request{shard.step(1),
                        {},
                        {&header, 1},
                        {&row, 1},
                        std::as_bytes(std::span(one)),
                        RowEncoding::kRaw,
                        number,
                        2};
    return pushed(shard.shard.push(request));
  };
  EXPECT_FALSE(piece(0, 3)->waits());  // taken in
  const auto early = push(shard.step(2), {4}, 9);
  const auto last = piece(1, 4);
  const auto later = push(shard.step(3), {4}, 2);
  EXPECT_FALSE(early->waits());
  EXPECT_TRUE(last->waits() && later->waits());
  source.release();
  EXPECT_THAT(*pull({3, 4})->rows, ElementsAre(1, 2));
  EXPECT_EQ(shard.shard.counters().kept.staged_bytes.load(), 0u);
}

TEST_F(RowWaitsTest, AFetchThatFailsIsToldToThoseThatWaitForItAlone) {
  source.hold("a", 3, 30);
  source.hold("a", 4, 40);
  const auto failed = push(shard.step(1), {3, 5}, 1), behind = push(shard.step(2), {5}, 2),
             other = pull({4});
  source.fail(std::make_exception_ptr(DataLossError("the disk")));
  EXPECT_EQ(failed->code(), Code::kDataLoss);
  EXPECT_FALSE(behind->waits());
  EXPECT_TRUE(other->waits());
  source.release();
  const auto again = push(shard.step(1), {3, 5}, 1);
  source.release();
  EXPECT_FALSE(again->pushed->duplicate);
  EXPECT_THAT(*pull({3, 4, 5})->rows, ElementsAre(1, 40, 1));
}

TEST_F(RowWaitsTest, HasABound) {
  source.hold("a", 3, 30);
  std::vector<std::unique_ptr<Asked>> asked;
  for (std::uint64_t closure = 1; closure <= 20; ++closure)
    asked.push_back(push(shard.step(closure), {3}, 1));
  EXPECT_THROW(push(shard.step(21), {3}, 1), UnavailableError);
  EXPECT_THROW(pull({3}), UnavailableError);
  source.release();
  EXPECT_EQ(shard.shard.version().counter, 20u);
  EXPECT_FALSE(push(shard.step(21), {3}, 1)->waits());
}

TEST_F(RowWaitsTest, ABadRequestIsRefusedBeforeItWaits) {
  source.hold("a", 3, 30);
  EXPECT_THROW(pull({3, 8}), InvalidArgumentError);
  EXPECT_THROW(push(shard.step(1), {3, 8}, 1), InvalidArgumentError);
  EXPECT_THAT(source.fetching, IsEmpty());
}

TEST_F(RowWaitsTest, AFetchMayOutliveItsShard) {
  HeldRows held;
  {
    ShardHarness short_lived({whole_table(0, variable("a", {8, 1}), sgd())},
                             {.lineage = 1, .row_source = &held});
    held.hold("a", 3, 30);
    short_lived.push(short_lived.step(1), 0, {3}, {1});
  }
  held.release();
}

// A hashed variable's rows come into memory where there were none.
TEST(RowWaits, RowsOfAHashedVariableAreMadeOfWhatWasFetched) {
  HeldRows source;
  VariableSpec spec{.name = "h", .shape = {std::int64_t{1} << 40, 2}};
  spec.hashed = true;
  ShardHarness shard({whole_table(0, std::make_shared<const VariableSpec>(spec), sgd())},
                     {.lineage = 1, .row_source = &source});
  const std::int64_t far = std::int64_t{1} << 39;
  source.hold("h", far, 5);
  const PushResult waits = shard.push(shard.step(1), 0, {7, far}, {1, 1, 1, 1});
  EXPECT_NE(waits.waits, 0u);
  EXPECT_EQ(shard.shard.counters().rows.load(), 0u);
  source.release();
  EXPECT_EQ(shard.shard.counters().rows.load(), 2u);
  EXPECT_THAT(shard.pull(0, {7, far}), ElementsAre(-1, -1, 4, 4));
}

// Whatever comes in whichever order: each row ends with the last value that was sent for it, and
// each read has, of every row, a value no older than the last one sent before the read.
TEST_F(RowWaitsTest, KeepsTheOrderOfEveryRowWhateverIsFetchedWhen) {
  Random random(11);
  std::map<std::int64_t, float> last;
  struct Reading {
    std::unique_ptr<Asked> asked;
    Floats at_least;
  };
  std::vector<Reading> reads;
  std::vector<std::unique_ptr<Asked>> pushes;
  const auto some_rows = [&] {
    Ids rows;
    for (std::int64_t row = 0; row < 8; ++row)
      if (random.below(3) == 0) rows.push_back(row);
    return rows;
  };
  for (std::uint64_t closure = 1; closure <= 400; ++closure) {
    // Only what is written nowhere, and read nowhere, goes: a real source knows that.
    if (pushes.empty() && reads.empty())
      for (const std::int64_t row : some_rows()) source.hold("a", row, last[row]);
    const Ids rows = some_rows();
    if (random.below(2) == 0) {
      pushes.push_back(push(shard.step(closure), rows, static_cast<float>(closure)));
      for (const std::int64_t row : rows) last[row] = static_cast<float>(closure);
    } else {
      Reading reading{pull(rows), {}};
      for (const std::int64_t row : rows) reading.at_least.push_back(last[row]);
      reads.push_back(std::move(reading));
    }
    if (random.below(3) == 0 && !source.fetching.empty()) {
      std::swap(source.fetching.front(), source.fetching[random.below(source.fetching.size())]);
      source.release();
    }
    if (closure % 15 != 0) continue;
    source.release_all();
    for (const auto& one : pushes) ASSERT_TRUE(one->pushed.has_value()) << closure;
    for (const Reading& read : reads) {
      ASSERT_TRUE(read.asked->rows.has_value()) << closure;
      for (std::size_t i = 0; i < read.at_least.size(); ++i)
        EXPECT_GE(read.asked->rows->at(i), read.at_least[i]) << closure;
    }
    for (const auto& [row, value] : last) {
      const auto now = pull({row});
      source.release_all();
      ASSERT_THAT(*now->rows, ElementsAre(value)) << "row " << row << " after " << closure;
    }
    pushes.clear();
    reads.clear();
  }
}

}  // namespace
}  // namespace cairn::ps
