// StagedRounds: what members push is kept, and its sum applied once, at the coordinator's word.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ShardRounds : public testing::Test {
 protected:
  StepContext share(std::uint64_t closure, std::uint64_t round = 1, std::uint64_t lane = 1,
                    std::uint64_t layout = 1) {
    StepContext step = shard.step(closure, 0, lane);
    step.round = round;
    step.sent_layout = layout;
    return step;
  }
  ShardVersion apply(const std::vector<std::uint64_t>& closures, std::uint64_t round = 1,
                     std::uint64_t layout = 1) {
    std::vector<RoundMember> members;
    for (const std::uint64_t closure : closures) members.push_back({closure, layout});
    return shard.shard.apply_round({ShardHarness::kSession, round, members}).version;
  }
  Floats w() { return shard.pull_whole(0); }
  std::uint64_t staged() const { return shard.shard.counters().kept.staged_bytes.load(); }

  static constexpr std::size_t kBytesMax = 1 << 16;
  static ShardOptions options() {
    ShardOptions options{.lineage = 100};
    options.staging.bytes_max = kBytesMax;
    return options;
  }
  ShardHarness shard{
      {whole_table(0, variable("w", {4, 1}), sgd()), whole_table(1, variable("a", {2, 1}), adam())},
      options()};
};

TEST_F(ShardRounds, SharesAreAppliedTogetherAsOnePush) {
  shard.push_whole(share(1), 0, {1, 2, 3, 4});
  shard.push_whole(share(2), 0, {10, 20, 30, 40});
  EXPECT_THAT(w(), ElementsAre(0, 0, 0, 0));

  const ShardVersion after = apply({1, 2});

  EXPECT_THAT(w(), ElementsAre(-11, -22, -33, -44));
  EXPECT_EQ(after.counter, 1u);
  EXPECT_EQ(staged(), 0u);
}

// Adam divides by the root of the square of the sum: two updates would give another result.
TEST_F(ShardRounds, ARuleSeesOneUpdateOfARound) {
  ShardHarness once({whole_table(1, variable("a", {2, 1}), adam())});
  once.push_whole(once.step(1), 1, {4, -6}, adam());

  shard.push_whole(share(1), 1, {1, -2}, adam());
  shard.push_whole(share(2), 1, {3, -4}, adam());
  apply({1, 2});

  EXPECT_EQ(shard.pull_whole(1), once.pull_whole(1));
}

TEST_F(ShardRounds, RowsOfSparseSharesMeetByTheirNumbers) {
  shard.push(share(1), 0, {0, 2}, {1, 2});
  shard.push(share(2), 0, {2, 3}, {10, 20});
  shard.push(share(3), 0, {}, {});
  apply({1, 2, 3});
  EXPECT_THAT(w(), ElementsAre(-1, 0, -12, -20));
}

TEST_F(ShardRounds, DenseAndSparseSharesOfOneTableAddUp) {
  shard.push(share(1), 0, {1}, {5});
  shard.push_whole(share(2), 0, {1, 1, 1, 1});
  shard.push(share(3), 0, {3}, {7});
  apply({1, 2, 3});
  EXPECT_THAT(w(), ElementsAre(-1, -6, -1, -8));
}

// In floats (1e8 + 1) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1.
TEST_F(ShardRounds, TheSumIsTakenInTheOrderOfTheMembersWhicheverComesFirst) {
  for (const std::uint64_t first : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}}) {
    const std::uint64_t round = first, base = 10 * first;
    const Floats values{1e8f, 1, -1e8f};
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::uint64_t member = (first + i) % 3;
      shard.push(share(base + member, round), 0, {static_cast<std::int64_t>(first)},
                 {values[member]});
    }
    apply({base, base + 2, base + 1}, round);
  }
  EXPECT_THAT(w(), ElementsAre(0, -1, -1, -1));
}

TEST_F(ShardRounds, ARetryTakesThePlaceOfTheShareAlsoOfAnotherLane) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  const std::uint64_t before = staged();
  EXPECT_FALSE(shard.push_whole(share(1, 1, 2), 0, {2, 2, 2, 2}).duplicate);
  EXPECT_EQ(staged(), before);
  apply({1});
  EXPECT_THAT(w(), ElementsAre(-2, -2, -2, -2));
}

TEST_F(ShardRounds, TheShareOfAFencedLaneStaysAndItsLatePushIsRefused) {
  shard.push_whole(share(1, 1, 2), 0, {1, 1, 1, 1});
  const LaneIncarnation alive = 1;
  shard.shard.fence(ShardHarness::kSession, 2, {&alive, 1});
  EXPECT_THROW(shard.push_whole(share(1, 1, 2), 0, {9, 9, 9, 9}), CancelledError);
  shard.push_whole(share(2, 1, 1), 0, {1, 1, 1, 1});
  apply({1, 2});
  EXPECT_THAT(w(), ElementsAre(-2, -2, -2, -2));
}

TEST_F(ShardRounds, ARunByANewerLayoutReplacesAllSlicesOfTheOlderOne) {
  const UpdateHeader header{0, 0, 1, false, sgd(), 1};
  const auto slice = [&](std::uint32_t number, std::int64_t row, std::uint64_t layout) {
    const Floats one{1};
    PushRequest request{
        share(1, 1, 1, layout), {}, {&header, 1}, {&row, 1}, std::as_bytes(std::span(one))};
    request.slice = number;
    return shard.shard.push(request);
  };
  slice(1, 0, 1);
  slice(2, 1, 1);
  slice(0, 3, 2);
  slice(1, 2, 2);
  slice(2, 1, 1);  // late
  apply({1}, 1, 2);
  EXPECT_THAT(w(), ElementsAre(0, 0, -1, -1));
}

TEST_F(ShardRounds, ABackupThatComesLateIsADuplicate) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.push_whole(share(3), 0, {5, 5, 5, 5});  // it came, and its lane has not answered
  apply({1});
  EXPECT_TRUE(shard.push_whole(share(2), 0, {1, 1, 1, 1}).duplicate);
  EXPECT_EQ(staged(), 0u);
  // It runs again as a member of the next round.
  EXPECT_FALSE(shard.push_whole(share(2, 2), 0, {1, 1, 1, 1}).duplicate);
  EXPECT_FALSE(shard.push_whole(share(3, 2), 0, {1, 1, 1, 1}).duplicate);
  apply({2, 3}, 2);
  EXPECT_THAT(w(), ElementsAre(-3, -3, -3, -3));
}

// Its next run, on another lane, has begun to push in pieces. If the late push had them let go, the
// second piece would be acknowledged, and the share would never be whole.
TEST_F(ShardRounds, ABackupThatComesLateTakesNothingFromItsNextRun) {
  const auto piece = [&](std::uint32_t number, const StepContext& step) {
    const UpdateHeader header{0, 0, 2, false, sgd(), 1};
    const std::vector<std::int64_t> rows{2 * number, 2 * number + 1};
    const Floats ones{1, 1};
    PushRequest request{step, {}, {&header, 1}, rows, std::as_bytes(std::span(ones))};
    request.piece = number;
    request.pieces = 2;
    return shard.shard.push(request);
  };
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  apply({1});
  piece(0, share(2, 2, 1));
  EXPECT_TRUE(piece(0, share(2, 1, 2)).duplicate);
  piece(1, share(2, 2, 1));
  EXPECT_TRUE(piece(1, share(2, 1, 2)).duplicate);
  apply({2}, 2);
  EXPECT_THAT(w(), ElementsAre(-2, -2, -2, -2));
  EXPECT_EQ(staged(), 0u);
}

TEST_F(ShardRounds, AppliedAgainNothingHappens) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  apply({1});
  // All members run again as another round, because another shard has lost its shares.
  EXPECT_TRUE(shard.push_whole(share(1, 2), 0, {1, 1, 1, 1}).duplicate);
  EXPECT_EQ(apply({1}).counter, 1u);
  EXPECT_EQ(apply({1}, 2).counter, 1u);
  EXPECT_THAT(w(), ElementsAre(-1, -1, -1, -1));
}

TEST_F(ShardRounds, MembersOfWhomSomeAreAppliedAreRefused) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  apply({1});
  EXPECT_THROW(apply({1, 2}, 2), InvalidArgumentError);
}

TEST_F(ShardRounds, WhatIsAppliedIsPartOfAMarkAndSharesAreNot) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.push_whole(share(2, 2), 0, {1, 1, 1, 1});
  apply({1});
  const MarkResult mark = shard.shard.mark(1);
  EXPECT_THAT(mark.applied.closures, ElementsAre(std::pair<std::uint64_t, std::uint64_t>(1, 2)));
}

TEST_F(ShardRounds, AfterARestoreTheMembersHaveToRunAgain) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.shard.configure({ShardHarness::kSession, 2, 42, {}, ShardHarness::kEpoch});
  restore(shard.shard, {});
  EXPECT_EQ(staged(), 0u);
  EXPECT_THROW(apply({1}), AbortedError);
  // also of a member that has no rows here
  EXPECT_THROW(apply({7}), AbortedError);
  shard.push_whole(share(1, 2, 1, 2), 0, {1, 1, 1, 1});
  apply({1}, 2, 2);
  EXPECT_THAT(w(), ElementsAre(-1, -1, -1, -1));
}

TEST_F(ShardRounds, ARestoreOfOtherVariablesLeavesTheRoundWhatItIs) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.shard.begin_restore({1});
  shard.shard.end_restore({});
  shard.shard.open();
  apply({1});
  EXPECT_THAT(w(), ElementsAre(-1, -1, -1, -1));
}

TEST_F(ShardRounds, ARestoreOfAVariableThatAShareUpdatesLosesTheRound) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.shard.begin_restore({0});
  shard.shard.end_restore({});
  shard.shard.open();
  EXPECT_THROW(apply({1}), AbortedError);
  shard.push_whole(share(1, 2), 0, {1, 1, 1, 1});
  apply({1}, 2);
  EXPECT_THAT(w(), ElementsAre(-1, -1, -1, -1));
}

TEST_F(ShardRounds, TooManySharesAreRefusedAndHarmNoOther) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  std::uint64_t far = 100;
  EXPECT_THROW(for (;; ++far) shard.push_whole(share(2, far), 0, {9, 9, 9, 9}),
               ResourceExhaustedError);
  EXPECT_LE(staged(), kBytesMax);
  EXPECT_GT(far, 110u);
  apply({1});
  EXPECT_THAT(w(), ElementsAre(-1, -1, -1, -1));
}

TEST_F(ShardRounds, MembersThatUpdateAVariableDifferentlyHaveNoSum) {
  shard.push_whole(share(1), 0, {1, 1, 1, 1});
  shard.push(share(2), 0, {0}, {1}, sgd(), {}, 0.5f);
  EXPECT_THROW(apply({1, 2}), InvalidArgumentError);
  EXPECT_THAT(w(), ElementsAre(0, 0, 0, 0));
}

TEST_F(ShardRounds, AnAssignmentOrASecondPushIsNoShare) {
  EXPECT_THROW(shard.push_whole(share(1), 0, {1, 1, 1, 1}, {RuleKind::kAssign, {}}),
               InvalidArgumentError);
  StepContext second = share(1);
  second.push_number = 1;
  EXPECT_THROW(shard.push_whole(second, 0, {1, 1, 1, 1}), InvalidArgumentError);
  EXPECT_EQ(staged(), 0u);
}

TEST_F(ShardRounds, AnOptimizersCountGoesUpByOne) {
  VariableSpec spec{.name = "iterations", .dtype = DType::kInt64, .shape = {}};
  ShardHarness counting({whole_table(0, std::make_shared<const VariableSpec>(spec), {})});
  const std::int64_t one = 1;
  for (const std::uint64_t closure : {1, 2}) {
    StepContext step = counting.step(closure);
    step.round = 1;
    const UpdateHeader header{0, 0, 0, true, counter_rule(), 1};
    counting.shard.push({step, {}, {&header, 1}, {}, std::as_bytes(std::span(&one, 1))});
  }
  const std::vector<RoundMember> members{{1, 1}, {2, 1}};
  counting.shard.apply_round({ShardHarness::kSession, 1, members});
  const ReadHeader header{0, 0, 0, true};
  std::int64_t count = 0;
  const PullRequest request{counting.step(0), {&header, 1}, {}};
  VerifiedPull& pull = counting.shard.pull(request);
  ASSERT_EQ(pull.bytes(), sizeof(count));
  pull.read(reinterpret_cast<std::byte*>(&count));
  EXPECT_EQ(count, 1);
}

TEST_F(ShardRounds, OnlyItsOwnSessionAppliesARound) {
  const RoundMember member{1, 1};
  EXPECT_THROW(shard.shard.apply_round({9, 1, {&member, 1}}), FailedPreconditionError);
  EXPECT_THROW(shard.shard.apply_round({ShardHarness::kSession, 0, {&member, 1}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::ps
