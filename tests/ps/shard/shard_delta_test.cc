// Marks of the rows that changed since an earlier one.
#include <gtest/gtest.h>

#include "tests/ps/shard/trained_shard.h"

namespace cairn::ps {
namespace {

// Saves the mark: the records that are written.
std::vector<Shard::FrozenRecord> saved(ShardHarness& shard, std::uint64_t mark) {
  auto records = shard.frozen(mark);
  shard.shard.drop_mark(mark);
  return records;
}

std::size_t rows_in(const std::vector<Shard::FrozenRecord>& records) {
  std::size_t rows = 0;
  for (const auto& [key, record] : records)
    if (const auto* block = std::get_if<storage::StoredRows>(&record))
      rows += block->offsets.size();
  return rows;
}

// The deltas are laid over the base in their order, and then all is as it is here.
void expect_same(ShardHarness& shard, const std::vector<Shard::FrozenRecord>& records,
                 UpdateRule rule) {
  ShardHarness restored(model(rule));
  restore(restored.shard, records);
  for (VariableId id = 0; id < 3; ++id)
    EXPECT_EQ(restored.pull_whole(id), shard.pull_whole(id)) << "variable " << id;
}

class ShardDelta : public testing::TestWithParam<UpdateRule> {};

TEST_P(ShardDelta, ADeltaHoldsWhatChangedSinceItsBase) {
  ShardHarness shard(model(GetParam()));
  train(shard, 1, GetParam());
  EXPECT_FALSE(shard.shard.mark(1, {.track = true}).delta);
  auto records = saved(shard, 1);
  const std::size_t whole = rows_in(records);
  for (std::uint64_t mark = 2; mark < 5; ++mark) {
    train(shard, mark, GetParam());
    EXPECT_TRUE(shard.shard.mark(mark, {.base = mark - 1, .track = true}).delta);
    EXPECT_EQ(shard.shard.whole_in_delta(mark),
              is_table_rule(GetParam().kind) ? "bias, embedding" : "");
    const auto changed = saved(shard, mark);
    // Adam moves every row that was ever touched, with its momentum.
    if (is_table_rule(GetParam().kind))
      EXPECT_GT(rows_in(changed), whole);
    else
      EXPECT_LE(rows_in(changed), whole);
    records.insert(records.end(), changed.begin(), changed.end());
    expect_same(shard, records, GetParam());
  }
}

// The checkpoint of mark 2 never came to be: that of mark 3 has what it would have had, too.
TEST_P(ShardDelta, ADeltaAfterOneThatFailedHoldsTheRowsOfBoth) {
  ShardHarness shard(model(GetParam()));
  train(shard, 1, GetParam());
  shard.shard.mark(1, {.track = true});
  auto records = saved(shard, 1);
  train(shard, 2, GetParam());
  EXPECT_TRUE(shard.shard.mark(2, {.base = 1, .track = true}).delta);
  shard.shard.drop_mark(2);
  train(shard, 3, GetParam());
  EXPECT_TRUE(shard.shard.mark(3, {.base = 1, .track = true}).delta);
  const auto changed = saved(shard, 3);
  records.insert(records.end(), changed.begin(), changed.end());
  expect_same(shard, records, GetParam());
}

// Model::save() takes such a checkpoint of its own, and removes it.
TEST_P(ShardDelta, APassingMarkHoldsAllRowsAndTakesNothingFromTheNextDelta) {
  ShardHarness shard(model(GetParam()));
  train(shard, 1, GetParam());
  shard.shard.mark(1, {.track = true});
  auto records = saved(shard, 1);
  train(shard, 2, GetParam());
  EXPECT_FALSE(shard.shard.mark(2, {.passing = true}).delta);
  expect_same(shard, saved(shard, 2), GetParam());
  train(shard, 3, GetParam());
  EXPECT_TRUE(shard.shard.mark(3, {.base = 1, .track = true}).delta);
  const auto changed = saved(shard, 3);
  records.insert(records.end(), changed.begin(), changed.end());
  expect_same(shard, records, GetParam());
}

// The rows that the failed delta held are known no more.
TEST_P(ShardDelta, APassingMarkAfterADeltaThatFailedMakesTheNextOneFull) {
  ShardHarness shard(model(GetParam()));
  train(shard, 1, GetParam());
  shard.shard.mark(1, {.track = true});
  saved(shard, 1);
  train(shard, 2, GetParam());
  shard.shard.mark(2, {.base = 1, .track = true});
  shard.shard.drop_mark(2);
  shard.shard.mark(3, {.passing = true});
  shard.shard.drop_mark(3);
  EXPECT_FALSE(shard.shard.mark(4, {.base = 1, .track = true}).delta);
  expect_same(shard, saved(shard, 4), GetParam());
}

TEST_P(ShardDelta, OfABaseThatItDoesNotKnowAShardMarksAllRows) {
  ShardHarness shard(model(GetParam()));
  train(shard, 1, GetParam());
  EXPECT_FALSE(shard.shard.mark(1, {.base = 7, .track = true}).delta) << "never marked";
  const auto records = saved(shard, 1);
  EXPECT_FALSE(shard.shard.mark(2, {.base = 7, .track = true}).delta);
  EXPECT_EQ(rows_in(saved(shard, 2)), rows_in(records));
  restore(shard.shard, records);
  EXPECT_FALSE(shard.shard.mark(3, {.base = 2, .track = true}).delta) << "restored since";
  EXPECT_EQ(rows_in(saved(shard, 3)), rows_in(records));
  shard.shard.mark(4);
  EXPECT_FALSE(shard.shard.mark(5, {.base = 4, .track = true}).delta) << "nothing was tracked";
}

INSTANTIATE_TEST_SUITE_P(Rules, ShardDelta, testing::Values(sgd(), adagrad(), adam()),
                         [](const auto& info) { return std::string(rule_name(info.param.kind)); });

}  // namespace
}  // namespace cairn::ps
