// A hashed variable is a dense one whose untouched rows take no memory.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/random.h"
#include "tests/effort.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::Eq;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kAllRows = 3000, kDim = 16, kMany = std::int64_t{1} << 42;

std::shared_ptr<const VariableSpec> embedding(std::int64_t rows, bool hashed) {
  VariableSpec spec{
      .name = "embedding", .shape = {rows, kDim}, .initializer = Initializer::uniform(-1, 1)};
  spec.hashed = hashed;
  return std::make_shared<const VariableSpec>(std::move(spec));
}

std::vector<TableConfig> embedding_model(UpdateRule rule, bool hashed, std::int64_t parts = 1,
                                         std::int64_t part = 0) {
  return {{0,
           embedding(kAllRows, hashed),
           rule,
           {{static_cast<std::uint32_t>(part),
             split_rows(kAllRows, parts)[static_cast<std::size_t>(part)]}}}};
}

Ids all_rows(std::int64_t rows = kAllRows) {
  Ids ids(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  return ids;
}

// A push of random rows: the more closures, the more rows there are.
void train_table(ShardHarness& shard, std::uint64_t closure, UpdateRule rule) {
  Random random(closure);
  Ids ids;
  for (std::int64_t row = 0; row < kAllRows; ++row)
    if (random.below(10) == 0) ids.push_back(row);
  Floats values(ids.size() * kDim);
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  shard.push(shard.step(closure), 0, ids, values, rule, {}, 0.1f);
}

class HashedTable : public testing::TestWithParam<UpdateRule> {};

TEST_P(HashedTable, DoesWhatADenseOneDoes) {
  ShardHarness dense(embedding_model(GetParam(), false)), hashed(embedding_model(GetParam(), true));
  EXPECT_EQ(hashed.pull(0, all_rows()), dense.pull(0, all_rows()));  // initial values
  for (std::uint64_t closure = 1; closure < 20; ++closure) {
    train_table(dense, closure, GetParam());
    train_table(hashed, closure, GetParam());
    ASSERT_EQ(hashed.pull(0, all_rows()), dense.pull(0, all_rows())) << "closure " << closure;
  }
}

TEST_P(HashedTable, ASaveDuringPushesHoldsTheStateAtTheMark) {
  for (const std::uint64_t before : {1, 2, 9}) {  // the later, the fewer rows are new
    ShardHarness shard(embedding_model(GetParam(), true)), twin(embedding_model(GetParam(), false));
    for (std::uint64_t closure = 1; closure <= before; ++closure) {
      train_table(shard, closure, GetParam());
      train_table(twin, closure, GetParam());
    }
    shard.shard.mark(1);
    shard.shard.begin_save(1);
    std::vector<Shard::FrozenRecord> records;
    std::string last;
    for (std::uint64_t closure = 50; auto record = shard.shard.next_frozen(1); ++closure) {
      EXPECT_LT(last, storage::encode(record->first));  // in the order of their keys
      last = storage::encode(record->first);
      records.push_back(std::move(*record));
      // between the blocks, and new rows behind the last one
      if (closure < 54) train_table(shard, closure, GetParam());
    }
    for (const std::int64_t parts : {1, 2, 3}) {
      for (std::int64_t part = 0; part < parts; ++part) {
        ShardHarness restored(embedding_model(GetParam(), true, parts, part));
        restore(restored.shard, records);
        const RowRange range = split_rows(kAllRows, parts)[static_cast<std::size_t>(part)];
        const Ids ids = all_rows(range.size());
        const auto pull = [&](ShardHarness& from, std::uint32_t of, Ids local) {
          const ReadHeader header{0, of, static_cast<std::uint32_t>(local.size()), false};
          return from.pull_request({from.step(0), {&header, 1}, local});
        };
        Ids whole = ids;
        for (std::int64_t& id : whole) id += range.begin;
        EXPECT_EQ(pull(restored, static_cast<std::uint32_t>(part), ids), pull(twin, 0, whole))
            << parts << " parts, part " << part;
      }
    }
    ShardHarness restored(embedding_model(GetParam(), true));
    restore(restored.shard, records);
    train_table(restored, 99, GetParam());  // slots and t as well: the next step is the same
    train_table(twin, 99, GetParam());
    EXPECT_EQ(restored.pull(0, all_rows()), twin.pull(0, all_rows()));
  }
}

TEST_P(HashedTable, RestoringForgetsRowsMadeSince) {
  ShardHarness shard(embedding_model(GetParam(), true)), twin(embedding_model(GetParam(), true));
  train_table(shard, 1, GetParam());
  train_table(twin, 1, GetParam());
  shard.shard.mark(1);
  const auto records = shard.frozen(1);
  shard.shard.drop_mark(1);
  for (std::uint64_t closure = 2; closure < 9; ++closure) train_table(shard, closure, GetParam());
  restore(shard.shard, records);
  EXPECT_EQ(shard.pull(0, all_rows()), twin.pull(0, all_rows()));
  EXPECT_EQ(shard.shard.counters().rows.load(), twin.shard.counters().rows.load());
}

INSTANTIATE_TEST_SUITE_P(Rules, HashedTable,
                         testing::Values(sgd(), adagrad(),
                                         UpdateRule{RuleKind::kRowwiseAdagrad, {0.1f, 1e-7f}},
                                         UpdateRule{RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}}),
                         [](const auto& info) { return std::string(rule_name(info.param.kind)); });

TEST(HashedTableMemory, OnlyRowsThatWereUpdatedTakeIt) {
  ShardHarness shard({whole_table(0, embedding(kMany, true), adagrad())});
  Ids far;
  for (std::int64_t i = 0; i < 1000; ++i) far.push_back(kMany / 1000 * i);
  shard.pull(0, far);
  EXPECT_EQ(shard.shard.counters().rows.load(), 0u);
  const std::uint64_t empty = shard.shard.counters().bytes.load();
  shard.push(shard.step(1), 0, far, Floats(far.size() * kDim, 1.0f), adagrad());
  EXPECT_EQ(shard.shard.counters().rows.load(), 1000u);
  EXPECT_LE(shard.shard.counters().bytes.load() - empty,
            1000u * (2 * kDim * sizeof(float) + IdIndex::kBytesAnId));
}

// Without slots a row is 64 bytes, beside which the index weighs most.
TEST(HashedTableMemory, AMillionRowsStayWithinAThirdMore) {
  for (const UpdateRule& rule : {sgd(), adagrad()}) {
    ShardHarness shard({whole_table(0, embedding(kMany, true), rule)});
    Random random(1);
    const std::size_t row = kDim * sizeof(float) * (1 + rule_slots(rule).size());
    for (std::uint64_t closure = 1; closure <= effort(200); ++closure) {
      Ids ids;
      for (int i = 0; i < 5000; ++i) ids.push_back(static_cast<std::int64_t>(random.below(kMany)));
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      shard.push(shard.step(closure), 0, ids, Floats(ids.size() * kDim, 1.0f), rule);
      const std::uint64_t rows = shard.shard.counters().rows.load();
      ASSERT_LE(static_cast<double>(shard.shard.counters().bytes.load()),
                1.35 * static_cast<double>(rows * row))
          << rows;
    }
  }
}

TEST(HashedTableMemory, ThatEndsIsSaidBeforeAnythingIsApplied) {
  ShardHarness shard({whole_table(0, embedding(kMany, true), sgd())},
                     {.lineage = 100, .tables_bytes_max = 100'000});
  Ids ids = all_rows(1000);
  shard.push(shard.step(1), 0, ids, Floats(ids.size() * kDim, 1.0f));
  const Floats before = shard.pull(0, ids);
  for (std::int64_t& id : ids) id += 1000;
  EXPECT_THAT([&] { shard.push(shard.step(2), 0, ids, Floats(ids.size() * kDim, 1.0f)); },
              ThrowsMessage<ResourceExhaustedError>(
                  HasSubstr("hashed variable 'embedding' holds 1000 rows")));
  EXPECT_THAT(shard.pull(0, all_rows(1000)), Eq(before));
  EXPECT_EQ(shard.shard.counters().rows.load(), 1000u);
}

TEST(HashedTableUse, WhatWouldTakeEveryRowIsRefused) {
  ShardHarness shard({whole_table(0, embedding(kMany, true), adagrad())});
  EXPECT_THAT([&] { shard.pull_whole(0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("has no value as a whole")));
  EXPECT_THAT([&] { shard.push_whole(shard.step(1), 0, Floats(16, 1.0f)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("cannot be updated as a whole")));
  EXPECT_THAT(
      [&] { shard.push(shard.step(2), 0, {1}, Floats(16, 1.0f), adam()); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("changes rows without a gradient too")));
}

TEST(HashedTableUse, AnotherRuleGetsItsSlotsBesideTheRowsThatAreThere) {
  ShardHarness hashed(embedding_model(sgd(), true)), dense(embedding_model(sgd(), false));
  for (ShardHarness* shard : {&hashed, &dense}) {
    train_table(*shard, 1, sgd());
    shard->shard.configure({ShardHarness::kSession, 2, 42,
                            embedding_model(adagrad(), shard == &hashed), ShardHarness::kEpoch});
    train_table(*shard, 2, adagrad());
  }
  EXPECT_EQ(hashed.pull(0, all_rows()), dense.pull(0, all_rows()));
}

}  // namespace
}  // namespace cairn::ps
