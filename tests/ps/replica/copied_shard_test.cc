// A copy that replays a shard's log has its rows, and knows its pushes.
#include "tests/ps/replica/random_pushes.h"

#include <gmock/gmock.h>

#include "core/base/random.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CopiedShard, HasEveryRowAndPushWheneverTheCopyBegins) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draws draws(seed);
    CopiedShard both(three_tables());
    std::uint64_t closure = 1;
    for (std::int64_t i = draws.below(40); i > 0; --i) push_at_random(both, draws, closure++);
    both.begin();
    const auto bytes = static_cast<std::size_t>(draws.below(600));
    while (both.copy_block(bytes)) {
      for (std::int64_t i = draws.below(3); i > 0; --i) push_at_random(both, draws, closure++);
      if (draws.below(5) == 0) both.primary.shard.announce(7, ShardHarness::kClosures, closure / 2);
      for (std::int64_t i = draws.below(3); i > 0 && !both.told.empty(); --i) both.replay_one();
    }
    for (std::int64_t i = draws.below(10); i > 0; --i) push_at_random(both, draws, closure++);
    both.replay_all();

    EXPECT_EQ(both.backup.books().ledger, both.primary.shard.books().ledger);
    EXPECT_EQ(both.backup.version().counter, both.primary.shard.version().counter);
    EXPECT_EQ(both.backup.version().lineage, both.primary.shard.version().lineage);
    both.promote();
    EXPECT_EQ(all_rows(both.backup), all_rows(both.primary.shard));
  }
}

TEST(CopiedShard, ACopyThatBeginsAgainKeepsNothingOfTheLast) {
  CopiedShard both(three_tables());
  both.primary.push(both.primary.step(1), 0, {1}, {1, 1, 1}, adagrad());
  both.begin();
  while (both.copy_block(1 << 20)) {
  }
  both.replay_all();
  // The copy has a row now that the primary has not: as if it had been the copy of another one.
  const Floats other{5, 5, 5};
  const Ids row{9};
  const UpdateHeader header{0, 0, 1, false, adagrad(), 1};
  ShardCopy(both.backup)
      .replay(PushRequest{
          both.primary.step(2), {}, {&header, 1}, row, std::as_bytes(std::span(other))});

  both.begin();
  while (both.copy_block(1 << 20)) {
  }
  both.replay_all();
  both.promote();

  EXPECT_EQ(all_rows(both.backup), all_rows(both.primary.shard));
  EXPECT_EQ(both.backup.books().ledger, both.primary.shard.books().ledger);
}

// Round 5 of closures 1 and 2, whose shares are `first` and `second`.
PushResult apply_round_of_two(ShardHarness& on, const Floats& first, const Floats& second) {
  for (const std::uint64_t closure : {1, 2}) {
    StepContext step = on.step(closure);
    step.round = 5;
    on.push_whole(step, 2, closure == 1 ? first : second);
  }
  const std::vector<RoundMember> members{{1, 1}, {2, 1}};
  return on.shard.apply_round({ShardHarness::kSession, 5, members});
}

TEST(CopiedShard, TakesTheSumOfARoundAndNoShares) {
  CopiedShard both({three_tables()[0], three_tables()[1], three_tables()[2]});
  both.begin();
  apply_round_of_two(both.primary, Floats(8, 1), Floats(8, 2));
  ASSERT_EQ(both.told.size(), 2u);  // the books and the sum
  both.replay_all();
  both.promote();

  EXPECT_EQ(all_rows(both.backup), all_rows(both.primary.shard));
  StepContext again = both.primary.step(1);
  again.epoch = 2;
  again.sent_layout = 2;
  const Floats values(8, 1);
  const UpdateHeader header{2, 0, 0, true, sgd(), 1};
  EXPECT_TRUE(
      both.backup.push({again, {}, {&header, 1}, {}, std::as_bytes(std::span(values))}).duplicate);
}

TEST(CopiedShard, ARoundWhoseSharesThePrimaryHadIsRunAgain) {
  CopiedShard both(three_tables());
  both.begin();
  StepContext step = both.primary.step(1);
  step.round = 5;
  both.primary.push_whole(step, 2, Floats(8, 1));
  both.replay_all();
  both.promote();

  const std::vector<RoundMember> members{{1, 1}};
  EXPECT_THROW(both.backup.apply_round({ShardHarness::kSession, 5, members}), AbortedError);
}

void push_share(ShardHarness& to, std::uint64_t closure, const Floats& values) {
  StepContext step = to.step(closure);
  step.round = 5;
  to.push_whole(step, 2, values);
}

// The first share is there when the copy begins. The second comes as a change, and is replaced by
// that of another run of its closure.
TEST(CopiedShard, ARoundIsAppliedByACopyThatHasItsShares) {
  CopiedShard both(three_tables());
  push_share(both.primary, 1, Floats(8, 1));
  both.begin(true);
  push_share(both.primary, 2, Floats(8, 2));
  push_share(both.primary, 2, Floats(8, 3));
  both.replay_all();
  both.promote();

  const std::vector<RoundMember> members{{1, 1}, {2, 1}};
  const RoundRequest round{ShardHarness::kSession, 5, members};
  EXPECT_FALSE(both.backup.apply_round(round).duplicate);
  EXPECT_FALSE(both.primary.shard.apply_round(round).duplicate);
  EXPECT_EQ(all_rows(both.backup), all_rows(both.primary.shard));
  EXPECT_TRUE(both.backup.apply_round(round).duplicate);
}

TEST(CopiedShard, ARoundThatThePrimaryHadAppliedIsNotAppliedAgainThoughItsSharesCameToo) {
  CopiedShard both(three_tables());
  both.begin(true);
  const std::vector<RoundMember> members{{1, 1}, {2, 1}};
  apply_round_of_two(both.primary, Floats(8, 1), Floats(8, 2));
  both.replay_all();
  both.promote();

  EXPECT_TRUE(both.backup.apply_round({ShardHarness::kSession, 5, members}).duplicate);
  EXPECT_EQ(all_rows(both.backup), all_rows(both.primary.shard));
  EXPECT_EQ(both.backup.counters().kept.staged_bytes, 0u);
}

// A restore has taken the share. The round must not be applied without it.
TEST(CopiedShard, ARoundThatHasLostAShareHasLostItOnTheCopyToo) {
  CopiedShard both(three_tables());
  push_share(both.primary, 1, Floats(8, 1));
  both.primary.shard.begin_restore({2});
  both.primary.shard.end_restore({});
  both.primary.shard.open();
  both.begin(true);
  both.replay_all();
  both.promote();

  const std::vector<RoundMember> members{{1, 1}};
  EXPECT_THROW(both.backup.apply_round({ShardHarness::kSession, 5, members}), AbortedError);
}

TEST(CopiedShard, AClosureThatReadWhatNobodyWasAnsweredIsTaken) {
  CopiedShard both(three_tables());
  both.begin();
  both.replay_all();
  both.primary.push_whole(both.primary.step(1), 2, Floats(8, 1));  // and then it dies
  const ShardVersion read = both.primary.shard.version();
  both.promote();

  StepContext step = both.primary.step(2);
  step.epoch = 2;
  step.sent_layout = 2;
  const Floats values(8, 1);
  const UpdateHeader header{2, 0, 0, true, sgd(), 1};
  const PushResult result =
      both.backup.push({step, read, {&header, 1}, {}, std::as_bytes(std::span(values))});
  EXPECT_FALSE(result.duplicate);
  EXPECT_EQ(result.staleness, 0u);
}

TEST(CopiedShard, WhatIsAppliedIsWhatWasTold) {
  // The values lie where a worker writes to them while they are applied.
  struct Meddler final : ChangeLog {
    bool wanted() const override { return true; }
    void changed(RowChange& change) override {
      record = record_of(change, buffers);
      values[0] = 100;
    }
    void announced(std::uint64_t, std::uint64_t) override {}
    void begins_anew() override {}
    Floats values = Floats(8, 1);
    std::shared_ptr<LogRecord> record;
    rpc::BufferPool buffers;
  };
  Meddler log;
  ShardHarness primary({whole_table(2, variable("whole", {4, 2}), sgd())},
                       {.lineage = 100, .log = &log});

  primary.push_whole(primary.step(1), 2, log.values);

  EXPECT_EQ(primary.pull_whole(2), Floats(8, -1));
}

TEST(CopiedShard, AnOpenShardTakesNoRecords) {
  CopiedShard both(three_tables());
  both.begin();
  both.primary.push_whole(both.primary.step(1), 2, Floats(8, 1));
  both.promote();

  EXPECT_THROW(both.replay_one(), FailedPreconditionError);
  both.told.pop_front();
  EXPECT_THROW(both.replay_one(), FailedPreconditionError);
  EXPECT_EQ(both.backup.books().ledger.closures.size(), 0u);
}

TEST(CopiedShard, ARecordThatIsWrongChangesNothing) {
  CopiedShard both(three_tables());
  both.begin();
  both.replay_all();
  both.primary.push_whole(both.primary.step(1), 2, Floats(8, 1));
  auto& record = *both.told.front();

  EXPECT_THROW(replay(both.backup, record.head().asReader(), record.payload().first(8)),
               InvalidArgumentError);
  record.head().getPush().getHeaders()[0].setRows(1000);
  EXPECT_THROW(both.replay_one(), InvalidArgumentError);
  EXPECT_EQ(both.backup.books().ledger.closures.size(), 0u);
  EXPECT_EQ(both.backup.version().counter, 0u);
}

TEST(CopiedShard, ARestoreBeginsTheLogAnew) {
  CopiedShard both(three_tables());
  both.begin();
  both.primary.shard.begin_restore();
  EXPECT_TRUE(both.anew);
}

TEST(CopiedShard, APushThatComesTwiceInTheLogIsRefused) {
  CopiedShard both(three_tables());
  both.begin();
  both.replay_all();
  both.primary.push_whole(both.primary.step(1), 2, Floats(8, 1));
  both.told.push_back(both.told.front());
  both.replay_one();
  EXPECT_THROW(both.replay_one(), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::ps
