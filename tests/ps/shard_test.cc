#include "tests/ps/shard_fixture.h"

#include <gmock/gmock.h>

#include "core/memory/arena.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShardPull, RowsComeInTheOrderOfTheIds) {
  ShardHarness shard(
      {whole_table(3, variable("table", {100, 3}, Initializer::uniform(-1, 1)), adagrad())});
  const Floats all = shard.pull_whole(3);

  Ids ids;
  for (std::int64_t i = 0; i < 50; ++i) ids.push_back((i * 37 + 5) % 100);
  const Floats some = shard.pull(3, ids);

  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_EQ(some[3 * i + j], all[3 * static_cast<std::size_t>(ids[i]) + j]);
}

TEST(ShardPull, RowsAreTheSameWhoeverReadsThemNext) {
  for (const std::int64_t dim : {3, 16, 32, 64, 80})
    for (const std::size_t from : {0u, 4u}) {  // floats past a line
      ShardHarness shard(
          {whole_table(0, variable("table", {500, dim}, Initializer::uniform(-1, 1)), adagrad())});
      Ids ids;
      for (std::int64_t i = 0; i < 300; ++i) ids.push_back((i * 37 + 5) % 500);
      const ReadHeader header{0, 0, static_cast<std::uint32_t>(ids.size()), false};
      PullRequest request{shard.step(0), {&header, 1}, ids};
      const Floats expected = shard.pull_request(request);
      request.next_reader = NextReader::kAnotherCore;
      Arena arena((expected.size() + from) * sizeof(float));
      auto* out = reinterpret_cast<float*>(arena.data()) + from;
      shard.shard.pull(request, reinterpret_cast<std::byte*>(out));
      EXPECT_EQ(Floats(out, out + expected.size()), expected)
          << dim << " elements, " << from << " past a line";
    }
}

TEST(ShardPull, ValuesThatTheCallerHasStayOutOfTheAnswerUntilTheyAreWritten) {
  ShardHarness shard({whole_table(0, variable("a", {2, 2}, Initializer::constant(1)), sgd()),
                      whole_table(1, variable("b", {3}, Initializer::constant(2)), sgd())});
  ReadHeader headers[] = {{0, 0, 0, true}, {1, 0, 0, true}};
  headers[0].written = shard.shard.written(headers[0]);
  PullRequest request{shard.step(0), headers, {}};
  request.copies_of = shard.shard.version().incarnation;
  EXPECT_THAT(shard.pull_request(request), ElementsAre(2, 2, 2));

  request.copies_of = 0;  // the numbers of another incarnation say nothing
  EXPECT_THAT(shard.pull_request(request), ElementsAre(1, 1, 1, 1, 2, 2, 2));

  request.copies_of = shard.shard.version().incarnation;
  shard.push(shard.step(1), 0, {1}, {10, 20});
  EXPECT_NE(shard.shard.written(headers[0]), headers[0].written);
  EXPECT_THAT(shard.pull_request(request), ElementsAre(1, 1, -9, -19, 2, 2, 2));
}

TEST(ShardPull, HeadersOfSeveralTablesShareOneAnswer) {
  ShardHarness shard({whole_table(0, variable("a", {4, 2}, Initializer::constant(1)), sgd()),
                      whole_table(1, variable("b", {3}, Initializer::constant(2)), adagrad()),
                      whole_table(2, variable("c", {}, Initializer::constant(3)), sgd())});
  const ReadHeader headers[] = {{1, 0, 0, true}, {0, 0, 1, false}, {2, 0, 0, true}};
  const Ids ids = {3};
  EXPECT_THAT(shard.pull_request({shard.step(0), headers, ids}), ElementsAre(2, 2, 2, 1, 1, 3));
}

TEST(ShardPull, Bfloat16HalvesTheBytesAndRoundsToNearest) {
  ShardHarness shard(
      {whole_table(0, variable("w", {2, 2}, Initializer::constant(1.00390625f)), sgd())});
  const ReadHeader header{0, 0, 0, true};
  const PullRequest request{shard.step(0), {&header, 1}, {}, Encoding::kBfloat16};
  std::vector<std::uint16_t> out(shard.shard.pull_bytes(request) / 2);
  ASSERT_EQ(out.size(), 4u);
  shard.shard.pull(request, reinterpret_cast<std::byte*>(out.data()));
  for (const std::uint16_t bits : out) EXPECT_EQ(bits, to_bfloat16(1.00390625f));
}

TEST(ShardPull, WhatDoesNotFitIsRefusedByName) {
  ShardHarness shard = ShardHarness({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_THROW(shard.pull(9, {0}), NotFoundError);
  for (const Ids& ids : {Ids{2}, Ids{-1}, Ids{0, 1, INT64_MAX}}) {
    try {
      shard.pull(0, ids);
      ADD_FAILURE() << "row " << ids.back() << " was answered";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'w'"));
    }
  }
  const ReadHeader greedy{0, 0, 3, false};
  const Ids two = {0, 1};
  EXPECT_THROW(shard.pull_request({shard.step(0), {&greedy, 1}, two}), InvalidArgumentError);
  EXPECT_THROW(shard.pull_request({shard.step(0), {}, two}), InvalidArgumentError);
}

TEST(ShardPull, AnAnswerAboveTheBoundIsRefusedBeforeItIsMade) {
  ShardHarness shard({whole_table(0, variable("w", {100, 4}), sgd())},
                     {.incarnation = 1, .answer_bytes_max = 100 * 16 - 1});
  EXPECT_THROW(shard.pull_whole(0), InvalidArgumentError);
  EXPECT_EQ(shard.pull(0, {1, 2}).size(), 8u);
}

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

  shard.shard.configure(
      {ShardHarness::kSession + 1, 1, 42, {whole_table(0, variable("w", {2, 2}), sgd())}});
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
  const std::vector<std::uint64_t> alive{2, 5};
  shard.shard.fence(ShardHarness::kSession, 5, alive);
  for (std::uint64_t fenced : {1, 3, 4})
    EXPECT_THROW(shard.push(shard.step(fenced, 0, fenced), 0, {0}, {1, 1}), CancelledError)
        << fenced;
  for (std::uint64_t heard : {2, 5, 6})
    EXPECT_FALSE(shard.push(shard.step(heard, 0, heard), 0, {0}, {1, 1}).duplicate) << heard;
}

TEST(ShardPush, AFenceThatComesLateLetsNobodyInAgain) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  const std::vector<std::uint64_t> before{1, 2}, after{2, 3};
  shard.shard.fence(ShardHarness::kSession, 3, after);
  shard.shard.fence(ShardHarness::kSession, 2, before);
  EXPECT_THROW(shard.push(shard.step(1, 0, 1), 0, {0}, {1, 1}), CancelledError);
  for (std::uint64_t heard : {2, 3, 4})
    EXPECT_FALSE(shard.push(shard.step(heard, 0, heard), 0, {0}, {1, 1}).duplicate) << heard;
}

TEST(ShardPush, APullFromAnotherIncarnationMeansRunTheClosureAgain) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_THROW(shard.push(shard.step(1), 0, {0}, {1, 1}, sgd(), {99, 0}), AbortedError);
  EXPECT_FALSE(shard.push(shard.step(1), 0, {0}, {1, 1}, sgd(), {100, 0}).duplicate);
}

// Such a closure may have pushed into the process that this one replaces, and is counted as lost
// there.
TEST(ShardPush, WhatWasSentByALayoutFromBeforeTheShardBeganIsAborted) {
  ManualClock clock;
  Shard shard(clock, {.incarnation = 1});
  shard.configure({7, 5, 42, {whole_table(0, variable("w", {2, 2}), sgd())}});
  shard.announce(7, 2, 0);
  shard.open();
  StepContext step;
  step.session = 7;
  step.closure = 1;
  step.layout_version = 4;
  EXPECT_THROW(shard.push({.step = step, .pieces = 1}), AbortedError);
  step.layout_version = 5;
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
  Shard shard(clock, {.incarnation = 1});
  StepContext step;
  step.session = 7;
  EXPECT_THROW(shard.pull_bytes({step, {}, {}}), UnavailableError);
  shard.configure({7, 1, 42, {}});
  EXPECT_THROW(shard.pull_bytes({step, {}, {}}), UnavailableError);
  shard.open();
  EXPECT_EQ(shard.pull_bytes({step, {}, {}}), 0u);
}

TEST(ShardPush, StalenessCountsTheUpdatesOfOthersSinceThePull) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  const Version pulled = shard.shard.version();
  EXPECT_EQ(shard.push(shard.step(1, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 0u);
  EXPECT_EQ(shard.push(shard.step(2, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 1u);
  // its own first push does not count
  EXPECT_EQ(shard.push(shard.step(2, 1), 0, {0}, {1, 1}, sgd(), pulled).staleness, 1u);
  EXPECT_EQ(shard.push(shard.step(3, 0), 0, {0}, {1, 1}, sgd(), pulled).staleness, 3u);
  EXPECT_EQ(shard.shard.counters().staleness_max.load(), 3u);
  EXPECT_EQ(shard.shard.counters().staleness_sum.load(), 5u);
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
                             Encoding::kRaw,
                             0,
                             pieces});
  };
  push(1, 1);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, -1, -2, 0, 0, -3, -4));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(-7, -8));

  push(2, 2);  // the first of two pieces, of which there is a copy
  rows = {9, 9, 9, 9};
  const UpdateHeader last{1, 0, 0, true, sgd(), 1};
  shard.shard.push(
      {shard.step(2), {}, {&last, 1}, {}, std::as_bytes(std::span(whole)), Encoding::kRaw, 1, 2});
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

// ---- pieces ----

// Piece `piece` of a push that updates rows 0.. of an Adam table, a row a piece.
PushResult push_piece(ShardHarness& shard, std::uint32_t piece, std::uint32_t pieces,
                      std::uint64_t worker = 1, std::uint64_t closure = 1) {
  const UpdateHeader header{0, 0, 1, false, adam(), 0.1f};
  const Ids ids = {piece};
  const Floats values = {1.0f + static_cast<float>(piece), 2};
  return shard.shard.push({shard.step(closure, 0, worker),
                           {},
                           {&header, 1},
                           ids,
                           std::as_bytes(std::span(values)),
                           Encoding::kRaw,
                           piece,
                           pieces});
}

TEST(ShardPieces, ApplyTogetherAndOnceWhateverTheirOrder) {
  ShardHarness whole({whole_table(0, variable("w", {4, 2}), adam())});
  whole.push(whole.step(1), 0, {0, 1, 2}, {1, 2, 2, 2, 3, 2}, adam(), {}, 0.1f);

  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())});
  const Floats before = shard.pull_whole(0);
  push_piece(shard, 2, 3);
  push_piece(shard, 0, 3);
  push_piece(shard, 0, 3);  // sent again after a lost answer
  EXPECT_EQ(shard.pull_whole(0), before);
  EXPECT_EQ(shard.shard.version().counter, 0u);
  push_piece(shard, 1, 3);

  EXPECT_EQ(shard.shard.version().counter, 1u);
  // a table rule moved the rows once, not once a piece
  EXPECT_EQ(shard.pull_whole(0), whole.pull_whole(0));
  EXPECT_TRUE(push_piece(shard, 1, 3).duplicate);
}

TEST(ShardPieces, OfARepeatedRunReplaceThoseOfTheFirst) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())});
  const UpdateHeader row{0, 0, 1, false, sgd(), 1}, two_rows{0, 0, 2, false, sgd(), 1};
  auto push = [&](const UpdateHeader& header, std::uint32_t piece, const Ids& ids,
                  const Floats& values) {
    return shard.shard.push({shard.step(1),
                             {},
                             {&header, 1},
                             ids,
                             std::as_bytes(std::span(values)),
                             Encoding::kRaw,
                             piece,
                             3});
  };
  push(row, 0, {0}, {1, 1});
  push(row, 1, {1}, {1, 1});
  push(row, 0, {0}, {2, 2});
  push(row, 1, {2}, {3, 3});
  // Of another size: which of the others it belongs with is not known.
  EXPECT_THROW(push(two_rows, 1, {1, 2}, {4, 4, 5, 5}), UnavailableError);
  push(row, 0, {0}, {2, 2});
  push(row, 1, {1}, {1, 1});
  push(row, 1, {2}, {3, 3});
  push(row, 2, {3}, {4, 4});

  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-2, -2, 0, 0, -3, -3, -4, -4));
}

TEST(ShardPieces, MakeOneUpdateHoweverTheyAreCut) {
  const Floats gradient{1, 2, 3, 4, 5, 6, 7, 8};
  for (const UpdateRule& rule :
       {sgd(), adagrad(), adam(), UpdateRule{RuleKind::kLazyAdam, adam().constants},
        UpdateRule{RuleKind::kMomentumTable, {0.9f}}}) {
    ShardHarness whole({whole_table(0, variable("w", {4, 2}), rule)}),
        cut({whole_table(0, variable("w", {4, 2}), rule)});
    for (std::uint64_t closure = 1; closure <= 3; ++closure) {
      const UpdateHeader all{0, 0, 4, false, rule, 0.5f}, half{0, 0, 2, false, rule, 0.5f};
      const Ids ids{0, 1, 2, 3};
      whole.shard.push({whole.step(closure),
                        {},
                        {&all, 1},
                        ids,
                        std::as_bytes(std::span(gradient)),
                        Encoding::kRaw,
                        0,
                        1});
      for (std::uint32_t piece = 0; piece < 2; ++piece)
        cut.shard.push({cut.step(closure),
                        {},
                        {&half, 1},
                        std::span(ids).subspan(2 * piece, 2),
                        std::as_bytes(std::span(gradient).subspan(4 * piece, 4)),
                        Encoding::kRaw,
                        piece,
                        2});
    }
    EXPECT_EQ(cut.pull_whole(0), whole.pull_whole(0)) << rule_name(rule.kind);
  }
}

TEST(ShardPieces, WaitWhereTheyLieUntilThePushIsDoneOrLost) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())});
  const UpdateHeader row{0, 0, 1, false, sgd(), 1};
  Floats memory{1, 1};
  auto push = [&](std::uint64_t closure, std::uint32_t piece, std::int64_t id,
                  std::shared_ptr<const void> owner) {
    PushRequest request{
        shard.step(closure), {},    {&row, 1}, {&id, 1}, std::as_bytes(std::span(memory)),
        Encoding::kRaw,      piece, 2};
    request.owner = std::move(owner);
    return shard.shard.push(request);
  };
  const auto owner = std::make_shared<int>();
  push(1, 0, 0, owner);
  EXPECT_EQ(owner.use_count(), 2);
  memory = {5, 5};  // as nobody may: it shows that there is no copy
  push(1, 1, 1, nullptr);
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-5, -5, -5, -5, 0, 0, 0, 0));

  push(2, 0, 0, owner);
  shard.clock.advance(std::chrono::seconds(61));
  push(3, 0, 0, nullptr);  // time passes with the next piece
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ShardPieces, OfADeadWorkerDoNotMixWithTheRetry) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())});
  push_piece(shard, 0, 2, 1);
  shard.shard.fence(ShardHarness::kSession, 1, {});
  push_piece(shard, 1, 2, 2);
  EXPECT_EQ(shard.shard.version().counter, 0u);  // worker 2 has yet to send its piece 0
  push_piece(shard, 0, 2, 2);
  EXPECT_EQ(shard.shard.version().counter, 1u);
  EXPECT_EQ(shard.shard.counters().staged_bytes.load(), 0u);
}

TEST(ShardPieces, ThatWereOnlyPromisedTakeNothing) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())});
  for (std::uint64_t closure = 1; closure <= 1000; ++closure)
    push_piece(shard, 0, 1 << 16, 1, closure);
  EXPECT_LT(shard.shard.counters().staged_bytes.load(), 1u << 20);
  // and an empty piece is counted as well
  EXPECT_GE(shard.shard.counters().staged_bytes.load(), 1000u * 500);
}

TEST(ShardConfigure, MoreRowsThanThereIsMemoryForAreRefusedBeforeAnyIsMade) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())},
                     {.incarnation = 1, .tables_bytes_max = 1 << 20});
  try {
    shard.shard.configure({ShardHarness::kSession,
                           2,
                           42,
                           {whole_table(1, variable("huge", {std::int64_t{1} << 40, 8}), adam())}});
    ADD_FAILURE() << "it was made";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'huge'"), HasSubstr("1048576 bytes"), HasSubstr("more ps")));
  }
  EXPECT_EQ(shard.pull_whole(0).size(), 8u);
  for (VariableId id = 1; id < 100; ++id) {  // nor does a little at a time get past it
    try {
      shard.shard.configure(
          {ShardHarness::kSession,
           2,
           42,
           {whole_table(id, variable("w" + std::to_string(id), {1000, 8}), sgd())}});
    } catch (const ResourceExhaustedError&) {
      EXPECT_LT(id, 40u);
      return;
    }
  }
  ADD_FAILURE() << "3 MB were taken";
}

TEST(ShardPieces, AreBoundedAndExpire) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())},
                     {.incarnation = 1, .staging = {.bytes_max = 2000}});
  push_piece(shard, 0, 2, 1, 1);
  EXPECT_THROW(
      {
        for (std::uint64_t closure = 2; closure < 9; ++closure) push_piece(shard, 0, 2, 1, closure);
      },
      ResourceExhaustedError);
  shard.clock.advance(std::chrono::seconds(61));
  push_piece(shard, 0, 2, 1, 9);
  // Its first half is gone: the sender, who had an answer for it, must not take the push for
  // complete.
  EXPECT_THROW(push_piece(shard, 1, 2, 1, 1), UnavailableError);
  EXPECT_EQ(shard.shard.version().counter, 0u);
  push_piece(shard, 0, 2, 1, 1);
  push_piece(shard, 1, 2, 1, 1);
  EXPECT_EQ(shard.shard.version().counter, 1u);
  EXPECT_THROW(push_piece(shard, 2, 2, 1, 10), InvalidArgumentError);
}

// ---- configuration ----

TEST(ShardConfigure, ANewVariableLeavesTheOthersAsTheyAre) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure({ShardHarness::kSession,
                         2,
                         42,
                         {whole_table(1, variable("b", {3}, Initializer::constant(4)), sgd())}});
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -1, 0, 0));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(4, 4, 4));
}

TEST(ShardConfigure, SlotsComeBesideRowsThatStay) {
  for (const Shape& shape : {Shape{3, 2}, Shape{6}}) {
    ShardHarness shard({whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)),
                                    {RuleKind::kAssign, {}})});
    const Floats before = shard.pull_whole(0);
    shard.shard.configure(
        {ShardHarness::kSession,
         2,
         42,
         {whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)), adagrad())}});
    EXPECT_EQ(shard.pull_whole(0), before);

    ShardHarness fresh(
        {whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)), adagrad())});
    const Floats gradient(6, 0.5f);
    shard.push_whole(shard.step(1), 0, gradient, adagrad());
    fresh.push_whole(fresh.step(1), 0, gradient, adagrad());
    EXPECT_EQ(shard.pull_whole(0), fresh.pull_whole(0));
  }
}

TEST(ShardConfigure, AVariableOfAnotherShapeIsRefused) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_THROW(shard.shard.configure(
                   {ShardHarness::kSession, 2, 42, {whole_table(0, variable("w", {2, 3}), sgd())}}),
               FailedPreconditionError);
  EXPECT_THROW(shard.shard.configure(
                   {ShardHarness::kSession, 2, 42, {whole_table(0, variable("v", {2, 2}), sgd())}}),
               FailedPreconditionError);
  EXPECT_THROW(
      shard.shard.configure(
          {ShardHarness::kSession, 2, 42, {{5, variable("x", {2, 2}), sgd(), {{0, {0, 3}}}}}}),
      InvalidArgumentError);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, 0, 0));
}

TEST(ShardConfigure, ANewSessionForgetsTheOldOne) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure({8, 1, 42, {whole_table(0, variable("w", {2, 2}), sgd())}});
  shard.shard.announce(8, 2, 0);
  shard.shard.open();
  StepContext step = shard.step(1);
  step.session = 8;
  EXPECT_FALSE(shard.push(step, 0, {1}, {1, 1}).duplicate);
  const ReadHeader header{0, 0, 0, true};
  EXPECT_THAT(shard.pull_request({step, {&header, 1}, {}}), ElementsAre(0, 0, -1, -1));
}

TEST(ShardConfigure, ASuccessorsTablesBeginAnewUnderItsOwnNumbers) {
  ShardHarness shard(
      {whole_table(0, variable("w", {2, 2}), sgd()), whole_table(1, variable("b", {2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure(
      {8,
       1,
       42,
       {whole_table(0, variable("b", {2}), sgd()), whole_table(1, variable("w", {2, 2}), sgd())}});
  shard.shard.open();
  StepContext step = shard.step(1);
  step.session = 8;
  const ReadHeader header{1, 0, 0, true};
  EXPECT_THAT(shard.pull_request({step, {&header, 1}, {}}), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace cairn::ps
