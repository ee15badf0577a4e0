// Pushes: applied once, whole or not at all, and only of those who may.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShardPush, AClosureRetriedIsAppliedOnce) {
  ShardHarness shard = ShardHarness({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_FALSE(shard.push_whole(shard.step(41), 0, {1, 1, 1, 1}).duplicate);

  // another worker, the same closure
  const PushResult again = shard.push_whole(shard.step(41, 0, 2), 0, {1, 1, 1, 1});

  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.version.counter, 1u);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -1, -1, -1));
}

TEST(ShardPush, EachPushOfAClosureCountsForItself) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_FALSE(shard.push(shard.step(5, 0), 0, {0}, {1, 1}).duplicate);
  EXPECT_FALSE(shard.push(shard.step(5, 1), 0, {0}, {1, 1}).duplicate);
  EXPECT_TRUE(shard.push(shard.step(5, 1), 0, {0}, {1, 1}).duplicate);
  EXPECT_THAT(shard.pull(0, {0}), ElementsAre(-2, -2));
}

TEST(ShardPush, BelowTheLowWatermarkEverythingIsADuplicate) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.push(shard.step(10), 0, {0}, {1, 1});
  shard.push(shard.step(12), 0, {0}, {1, 1});
  shard.shard.announce(ShardHarness::kSession, ShardHarness::kClosures, 12);

  EXPECT_TRUE(shard.push(shard.step(11), 0, {0}, {1, 1}).duplicate);  // never seen, but settled
  EXPECT_TRUE(shard.push(shard.step(10), 0, {0}, {1, 1}).duplicate);
  EXPECT_FALSE(shard.push(shard.step(13), 0, {0}, {1, 1}).duplicate);
  EXPECT_THAT(shard.pull(0, {0}), ElementsAre(-3, -3));
}

TEST(ShardPush, AClosureThatTheCoordinatorHasNotAnnouncedIsRefusedAndHidesNoOther) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  try {
    shard.push(shard.step(std::uint64_t{1} << 62), 0, {0}, {1, 1});
    ADD_FAILURE() << "a closure of no coordinator was applied";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("announced closures below 4294967296"));
  }
  EXPECT_THAT(shard.pull(0, {0}), ElementsAre(0, 0));
  EXPECT_FALSE(shard.push(shard.step(1), 0, {0}, {1, 1}).duplicate);
  EXPECT_THAT(shard.pull(0, {0}), ElementsAre(-1, -1));
}

TEST(ShardPush, WhatIsAnnouncedNeverGoesBackAndEndsWithItsSession) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.shard.announce(ShardHarness::kSession, 10, 5);  // an old word, late
  EXPECT_FALSE(shard.push(shard.step(ShardHarness::kClosures - 1), 0, {0}, {1, 1}).duplicate);
  EXPECT_TRUE(shard.push(shard.step(4), 0, {0}, {1, 1}).duplicate);
  EXPECT_THROW(shard.shard.announce(ShardHarness::kSession, 10, 11), InvalidArgumentError);
  EXPECT_THROW(shard.shard.announce(ShardHarness::kSession + 1, 10, 5), FailedPreconditionError);

  shard.shard.configure({ShardHarness::kSession + 1,
                         1,
                         42,
                         {whole_table(0, variable("w", {2, 2}), sgd())},
                         ShardHarness::kEpoch});
  shard.shard.open();
  StepContext step = shard.step(4);
  step.session = ShardHarness::kSession + 1;
  EXPECT_THROW(shard.push(step, 0, {0}, {1, 1}), InvalidArgumentError);
  shard.shard.announce(ShardHarness::kSession + 1, 10, 0);
  EXPECT_FALSE(shard.push(step, 0, {0}, {1, 1}).duplicate);
}

TEST(ShardPush, AFencedWorkerIsRefusedAndItsRetryElsewhereIsNot) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.shard.fence(ShardHarness::kSession, 1, {});
  EXPECT_THROW(shard.push(shard.step(1, 0, 1), 0, {0}, {1, 1}), CancelledError);
  EXPECT_FALSE(shard.push(shard.step(1, 0, 2), 0, {0}, {1, 1}).duplicate);
  EXPECT_THAT(shard.pull_request({shard.step(2, 0, 2), {}, {}}), ElementsAre());
  EXPECT_THROW(shard.pull_request({shard.step(2, 0, 1), {}, {}}), CancelledError);
}

TEST(ShardPush, AFenceShutsOutAllOfThePastButThoseThatLive) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  const std::vector<LaneIncarnation> alive{2, 5};
  shard.shard.fence(ShardHarness::kSession, 5, alive);
  for (std::uint64_t fenced : {1, 3, 4})
    EXPECT_THROW(shard.push(shard.step(fenced, 0, fenced), 0, {0}, {1, 1}), CancelledError)
        << fenced;
  for (std::uint64_t heard : {2, 5, 6})
    EXPECT_FALSE(shard.push(shard.step(heard, 0, heard), 0, {0}, {1, 1}).duplicate) << heard;
}

TEST(ShardPush, AFenceThatComesLateLetsNobodyInAgain) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  const std::vector<LaneIncarnation> before{1, 2}, after{2, 3};
  shard.shard.fence(ShardHarness::kSession, 3, after);
  shard.shard.fence(ShardHarness::kSession, 2, before);
  EXPECT_THROW(shard.push(shard.step(1, 0, 1), 0, {0}, {1, 1}), CancelledError);
  for (std::uint64_t heard : {2, 3, 4})
    EXPECT_FALSE(shard.push(shard.step(heard, 0, heard), 0, {0}, {1, 1}).duplicate) << heard;
}

TEST(ShardPush, APullFromAnotherLineageMeansRunTheClosureAgain) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_THROW(shard.push(shard.step(1), 0, {0}, {1, 1}, sgd(), {99, 0}), AbortedError);
  EXPECT_FALSE(shard.push(shard.step(1), 0, {0}, {1, 1}, sgd(), {100, 0}).duplicate);
}

// Such a closure may have pushed into the process that this one replaces, and is counted as lost
// there.
TEST(ShardPush, WhatWasSentByALayoutFromBeforeTheShardBeganIsAborted) {
  ManualClock clock;
  Shard shard(clock, {.lineage = 1});
  shard.configure({7, 5, 42, {whole_table(0, variable("w", {2, 2}), sgd())}});
  shard.announce(7, 2, 0);
  shard.open();
  StepContext step;
  step.session = 7;
  step.closure = 1;
  step.sent_layout = 4;
  EXPECT_THROW(shard.push({.step = step, .pieces = 1}), AbortedError);
  step.sent_layout = 5;
  EXPECT_FALSE(shard.push({.step = step, .pieces = 1}).duplicate);
}

TEST(ShardPush, AnotherSessionIsRefused) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  StepContext foreign = shard.step(1);
  foreign.session = 8;
  EXPECT_THROW(shard.push(foreign, 0, {0}, {1, 1}), FailedPreconditionError);
  EXPECT_THROW(shard.pull_request({foreign, {}, {}}), FailedPreconditionError);
}

TEST(ShardPush, UntilOpenedAShardIsUnavailable) {
  ManualClock clock;
  Shard shard(clock, {.lineage = 1});
  StepContext step;
  step.session = 7;
  EXPECT_THROW(shard.pull({step, {}, {}}), UnavailableError);
  shard.configure({7, 1, 42, {}});
  EXPECT_THROW(shard.pull({step, {}, {}}), UnavailableError);
  shard.open();
  EXPECT_EQ(shard.pull({step, {}, {}}).bytes(), 0u);
}

TEST(ShardPush, StalenessCountsTheUpdatesOfOthersSinceThePull) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  const ShardVersion pulled = shard.shard.version();
  EXPECT_EQ(shard.push(shard.step(1, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 0u);
  EXPECT_EQ(shard.push(shard.step(2, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 1u);
  // its own first push does not count
  EXPECT_EQ(shard.push(shard.step(2, 1), 0, {0}, {1, 1}, sgd(), pulled).staleness, 1u);
  EXPECT_EQ(shard.push(shard.step(3, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 3u);
  EXPECT_EQ(shard.shard.counters().staleness.max.load(), 3u);
  EXPECT_EQ(shard.shard.counters().staleness.sum.load(), 5u);
}

TEST(ShardPush, ABadPushChangesNothing) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adagrad()),
                      whole_table(1, variable("n", {4, 2}), sgd())});
  const Floats before = shard.pull_whole(0);
  const UpdateHeader good{0, 0, 1, false, adagrad(), 1};
  struct Case {
    const char* what;
    UpdateHeader second;
    Ids ids;
    std::size_t values;
    Code code;
  };
  const Case cases[] = {
      {"row beyond the table", {1, 0, 1, false, sgd(), 1}, {0, 4}, 4, Code::kInvalidArgument},
      {"row below 0", {1, 0, 1, false, sgd(), 1}, {0, -1}, 4, Code::kInvalidArgument},
      {"ids not ascending", {1, 0, 2, false, sgd(), 1}, {0, 2, 1}, 6, Code::kInvalidArgument},
      {"an id twice", {1, 0, 2, false, sgd(), 1}, {0, 2, 2}, 6, Code::kInvalidArgument},
      {"too few values", {1, 0, 1, false, sgd(), 1}, {0, 1}, 3, Code::kInvalidArgument},
      {"too many values", {1, 0, 1, false, sgd(), 1}, {0, 1}, 5, Code::kInvalidArgument},
      {"too few ids", {1, 0, 2, false, sgd(), 1}, {0, 1}, 6, Code::kInvalidArgument},
      {"too many ids", {1, 0, 1, false, sgd(), 1}, {0, 1, 2}, 4, Code::kInvalidArgument},
      {"no such variable", {5, 0, 1, false, sgd(), 1}, {0, 1}, 4, Code::kNotFound},
      {"no such part", {1, 1, 1, false, sgd(), 1}, {0, 1}, 4, Code::kNotFound},
      {"no such rule",
       {1, 0, 1, false, {static_cast<RuleKind>(77), {}}, 1},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"a constant that is no number",
       {1, 0, 1, false, {RuleKind::kSgd, {NAN}}, 1},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"a decay of 1",
       {1, 0, 1, false, {RuleKind::kAdam, {1, 0.9f, 0}}, 1},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"a negative learning rate",
       {1, 0, 1, false, sgd(), -0.5f},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"a learning rate that is no number",
       {1, 0, 1, false, sgd(), NAN},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"an endless learning rate",
       {1, 0, 1, false, sgd(), INFINITY},
       {0, 1},
       4,
       Code::kInvalidArgument},
      {"slots never configured", {1, 0, 1, false, adam(), 1}, {0, 1}, 4, Code::kFailedPrecondition},
      {"whole and rows at once", {1, 0, 1, true, sgd(), 1}, {0, 1}, 10, Code::kInvalidArgument},
  };
  for (const Case& one : cases) {
    const UpdateHeader headers[] = {good, one.second};
    const Floats values(one.values, 1.0f);
    try {
      shard.shard.push({shard.step(1), {}, headers, one.ids, std::as_bytes(std::span(values))});
      ADD_FAILURE() << one.what << " was applied";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), one.code) << one.what << ": " << error.what();
    }
    EXPECT_EQ(shard.pull_whole(0), before) << one.what;
    EXPECT_EQ(shard.shard.version().counter, 0u) << one.what;
  }
  // and the closure is still to be done
  EXPECT_FALSE(shard.push(shard.step(1), 0, {0}, {1, 1}, adagrad()).duplicate);
}

TEST(ShardPush, HeadersApplyInTheirOrder) {
  ShardHarness shard({whole_table(0, variable("w", {1, 2}), sgd())});
  const UpdateRule assign{RuleKind::kAssign, {}}, add{RuleKind::kAssignAdd, {}};
  const UpdateHeader headers[] = {{0, 0, 0, true, assign, 0},
                                  {0, 0, 0, true, add, 0},
                                  {0, 0, 0, true, assign, 0},
                                  {0, 0, 0, true, add, 0}};
  const Floats values = {1, 1, 2, 2, 10, 10, 5, 5};
  shard.shard.push({shard.step(1), {}, headers, {}, std::as_bytes(std::span(values))});
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(15, 15));
}

// As they lie in shared memory.
TEST(ShardPush, ValuesOfEachHeaderMayLieApart) {
  const UpdateHeader headers[] = {
      {0, 0, 2, false, sgd(), 1}, {1, 0, 0, true, sgd(), 1}, {0, 0, 0, false, sgd(), 1}};
  const Ids ids = {1, 3};
  const Floats whole = {7, 8};
  Floats rows = {1, 2, 3, 4};
  std::vector<std::span<const std::byte>> places{
      std::as_bytes(std::span(rows)), std::as_bytes(std::span(whole)), {}};
  ShardHarness shard(
      {whole_table(0, variable("w", {4, 2}), sgd()), whole_table(1, variable("v", {2}), sgd())});
  const auto push = [&](std::uint64_t closure, std::uint32_t pieces) {
    return shard.shard.push({shard.step(closure),
                             {},
                             headers,
                             ids,
                             std::span<const std::span<const std::byte>>(places),
                             RowEncoding::kRaw,
                             0,
                             pieces});
  };
  push(1, 1);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, -1, -2, 0, 0, -3, -4));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(-7, -8));

  push(2, 2);  // the first of two pieces, of which there is a copy
  rows = {9, 9, 9, 9};
  const UpdateHeader last{1, 0, 0, true, sgd(), 1};
  shard.shard.push({shard.step(2),
                    {},
                    {&last, 1},
                    {},
                    std::as_bytes(std::span(whole)),
                    RowEncoding::kRaw,
                    1,
                    2});
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, -2, -4, 0, 0, -6, -8));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(-21, -24));

  const std::vector<std::span<const std::byte>> good{
      std::as_bytes(std::span(rows)), std::as_bytes(std::span(whole)), {}};
  for (const auto& [place, bytes, words] :
       {std::tuple(0, 12, "variable 'w': its 2 rows of 2 take 16 bytes, 12 came"),
        std::tuple(1, 4, "variable 'v': its 2 rows of 1 take 8 bytes, 4 came"),
        std::tuple(2, 8, "variable 'w': its 0 rows of 2 take 0 bytes, 8 came")}) {
    places = good;
    places[static_cast<std::size_t>(place)] =
        std::as_bytes(std::span(rows)).first(static_cast<std::size_t>(bytes));
    EXPECT_THAT([&] { push(3, 1); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(words)));
  }
  places.resize(2);
  EXPECT_THAT([&] { push(3, 1); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(
                                       "a push of 3 headers whose values lie in 2 places")));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(-21, -24));
}

}  // namespace
}  // namespace cairn::ps
