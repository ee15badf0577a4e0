// A shard answers pulls with rows as they are, and refuses pulls that do not fit its tables.
#include <gmock/gmock.h>

#include "core/memory/arena.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

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
      shard.shard.pull(request).read(reinterpret_cast<std::byte*>(out));
      EXPECT_EQ(Floats(out, out + expected.size()), expected)
          << dim << " elements, " << from << " past a line";
    }
}

TEST(ShardPull, ValuesThatTheCallerHasStayOutOfTheAnswerUntilTheyAreWritten) {
  ShardHarness shard({whole_table(0, variable("a", {2, 2}, Initializer::constant(1)), sgd()),
                      whole_table(1, variable("b", {3}, Initializer::constant(2)), sgd())});
  ReadHeader headers[] = {{0, 0, 0, true}, {1, 0, 0, true}};
  headers[0].written = shard.written(headers[0]);
  PullRequest request{shard.step(0), headers, {}};
  request.copies_of = shard.shard.version().lineage;
  EXPECT_THAT(shard.pull_request(request), ElementsAre(2, 2, 2));

  request.copies_of = 0;  // the numbers of another lineage say nothing
  EXPECT_THAT(shard.pull_request(request), ElementsAre(1, 1, 1, 1, 2, 2, 2));

  request.copies_of = shard.shard.version().lineage;
  shard.push(shard.step(1), 0, {1}, {10, 20});
  EXPECT_NE(shard.written(headers[0]), headers[0].written);
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
  const PullRequest request{shard.step(0), {&header, 1}, {}, RowEncoding::kBfloat16};
  VerifiedPull& pull = shard.shard.pull(request);
  std::vector<std::uint16_t> out(pull.bytes() / 2);
  ASSERT_EQ(out.size(), 4u);
  pull.read(reinterpret_cast<std::byte*>(out.data()));
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
                     {.lineage = 1, .answer_bytes_max = 100 * 16 - 1});
  EXPECT_THROW(shard.pull_whole(0), InvalidArgumentError);
  EXPECT_EQ(shard.pull(0, {1, 2}).size(), 8u);
}

}  // namespace
}  // namespace cairn::ps
