// Pushes that come in pieces.
#include <gmock/gmock.h>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;

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
                           RowEncoding::kRaw,
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
                             RowEncoding::kRaw,
                             piece,
                             3});
  };
  push(row, 0, {0}, {1, 1});
  push(row, 1, {1}, {1, 1});
  push(row, 0, {0}, {2, 2});
  push(row, 1, {2}, {3, 3});
  // This piece has another size: which of the others it belongs with is not known.
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
                        RowEncoding::kRaw,
                        0,
                        1});
      for (std::uint32_t piece = 0; piece < 2; ++piece)
        cut.shard.push({cut.step(closure),
                        {},
                        {&half, 1},
                        std::span(ids).subspan(2 * piece, 2),
                        std::as_bytes(std::span(gradient).subspan(4 * piece, 4)),
                        RowEncoding::kRaw,
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
        RowEncoding::kRaw,   piece, 2};
    request.owner = std::move(owner);
    return shard.shard.push(request);
  };
  const auto owner = std::make_shared<int>();
  push(1, 0, 0, owner);
  EXPECT_EQ(owner.use_count(), 2);
  memory = {5, 5};  // forbidden to callers: it shows that there is no copy
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
  EXPECT_EQ(shard.shard.counters().kept.staged_bytes.load(), 0u);
}

TEST(ShardPieces, ThatWereOnlyPromisedTakeNothing) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())});
  for (std::uint64_t closure = 1; closure <= 1000; ++closure)
    push_piece(shard, 0, 1 << 16, 1, closure);
  EXPECT_LT(shard.shard.counters().kept.staged_bytes.load(), 1u << 20);
  // and an empty piece is counted as well
  EXPECT_GE(shard.shard.counters().kept.staged_bytes.load(), 1000u * 500);
}

TEST(ShardPieces, AreBoundedAndExpire) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), adam())},
                     {.lineage = 1, .staging = {.bytes_max = 2000}});
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

}  // namespace
}  // namespace cairn::ps
