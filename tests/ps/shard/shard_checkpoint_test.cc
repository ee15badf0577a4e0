// The cut and restoring, on shards without any network or disk.
#include <gmock/gmock.h>

#include "tests/ps/shard/trained_shard.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;

class ShardCut : public testing::TestWithParam<UpdateRule> {};

TEST_P(ShardCut, ASaveDuringPushesHoldsTheStateAtTheMark) {
  ShardHarness shard(model(GetParam()));
  for (std::uint64_t closure = 1; closure < 5; ++closure) train(shard, closure, GetParam());
  ShardHarness twin(model(GetParam()));
  for (std::uint64_t closure = 1; closure < 5; ++closure) train(twin, closure, GetParam());

  shard.shard.mark(1);
  shard.shard.begin_save(1);
  std::vector<Shard::FrozenRecord> records;
  for (std::uint64_t closure = 5; auto record = shard.shard.next_frozen(1); ++closure) {
    records.push_back(std::move(*record));
    if (closure < 9) train(shard, closure, GetParam());  // between the blocks
  }

  ShardHarness restored(model(GetParam()));
  restore(restored.shard, records);
  for (VariableId id = 0; id < 3; ++id)
    EXPECT_EQ(restored.pull_whole(id), twin.pull_whole(id)) << "variable " << id;
  train(restored, 20, GetParam());  // slots and t as well: the next step is the same
  train(twin, 20, GetParam());
  for (VariableId id = 0; id < 3; ++id)
    EXPECT_EQ(restored.pull_whole(id), twin.pull_whole(id)) << "variable " << id;
}

TEST_P(ShardCut, RestoresOntoAnyNumberOfShards) {
  ShardHarness one(model(GetParam()));
  for (std::uint64_t closure = 1; closure < 4; ++closure) train(one, closure, GetParam());
  one.shard.mark(1);
  const auto records = one.frozen(1);
  for (const std::int64_t parts : {1, 2, 3, 5}) {
    std::array<Floats, 3> values, stepped;
    for (std::int64_t part = 0; part < parts; ++part) {
      ShardHarness piece(model(GetParam(), parts, part));
      restore(piece.shard, records);
      for (VariableId id = 0; id < 3; ++id) {
        const ReadHeader header{id, static_cast<std::uint32_t>(part), 0, true};
        const Floats rows = piece.pull_request({piece.step(0), {&header, 1}, {}});
        values[id].insert(values[id].end(), rows.begin(), rows.end());
        const UpdateHeader update{id, static_cast<std::uint32_t>(part), 0, true, GetParam(), 0.1f};
        const Floats gradient(rows.size(), 0.25f);
        piece.shard.push(
            {piece.step(50, id), {}, {&update, 1}, {}, std::as_bytes(std::span(gradient))});
        const Floats after = piece.pull_request({piece.step(0), {&header, 1}, {}});
        stepped[id].insert(stepped[id].end(), after.begin(), after.end());
      }
    }
    ShardHarness whole(model(GetParam()));
    restore(whole.shard, records);
    for (VariableId id = 0; id < 3; ++id) {
      EXPECT_EQ(values[id], one.pull_whole(id)) << parts << " shards, variable " << id;
      const UpdateHeader update{id, 0, 0, true, GetParam(), 0.1f};
      const Floats gradient(values[id].size(), 0.25f);
      whole.shard.push(
          {whole.step(50, id), {}, {&update, 1}, {}, std::as_bytes(std::span(gradient))});
      EXPECT_EQ(stepped[id], whole.pull_whole(id))
          << parts << " shards, variable " << id << ": its slots";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ShardCut, testing::Values(sgd(), adagrad(), adam()),
                         [](const auto& info) { return std::string(rule_name(info.param.kind)); });

TEST(ShardMark, RowsNeverTouchedAreNotWritten) {
  ShardHarness shard(
      {whole_table(0, variable("w", {kRows, 16}, Initializer::uniform(-1, 1)), adagrad())});
  shard.push(shard.step(1), 0, {17, 3000}, Floats(32, 1.0f), adagrad());
  shard.pull_whole(0);  // reading is no touch
  shard.shard.mark(1);
  std::int64_t rows = 0;
  for (const auto& [key, record] : shard.frozen(1))
    if (const auto* stored = std::get_if<storage::StoredRows>(&record)) rows += stored->rows();
  EXPECT_EQ(rows, 2);
}

TEST(ShardMark, RecordsComeInTheOrderOfTheirKeys) {
  std::vector<TableConfig> tables;
  tables.push_back(
      {0, variable("long name", {kRows, 4}), sgd(), {{0, {0, 2000}}, {1, {2000, kRows}}}});
  tables.push_back(whole_table(1, variable("z", {10}), sgd()));
  tables.push_back(whole_table(2, variable("a", {10}), sgd()));
  ShardHarness shard(tables);
  const UpdateHeader headers[] = {{0, 0, 0, true, sgd(), 1},
                                  {0, 1, 0, true, sgd(), 1},
                                  {1, 0, 0, true, sgd(), 1},
                                  {2, 0, 0, true, sgd(), 1}};
  const Floats values(kRows * 4 + 20, 1.0f);
  shard.shard.push({shard.step(1), {}, headers, {}, std::as_bytes(std::span(values))});
  shard.shard.mark(1);
  std::string last;
  std::size_t count = 0;
  for (const auto& [key, record] : shard.frozen(1)) {
    const std::string bytes = storage::encode(key);
    EXPECT_LT(last, bytes);
    last = bytes;
    ++count;
  }
  EXPECT_GT(count, 6u);
}

TEST(ShardMark, OneAtATimeAndTheSameAnswerTwice) {
  ShardHarness shard(model(sgd()));
  train(shard, 3, sgd());
  const MarkResult first = shard.shard.mark(1);
  EXPECT_THAT(first.applied.closures, ElementsAre(std::pair<std::uint64_t, std::uint64_t>(3, 4)));
  train(shard, 4, sgd());
  EXPECT_EQ(shard.shard.mark(1).version, first.version);
  shard.shard.begin_save(1);
  EXPECT_THROW(shard.shard.mark(2), FailedPreconditionError);
  EXPECT_THROW(shard.shard.begin_save(1), FailedPreconditionError);
  shard.shard.drop_mark(1);
  EXPECT_THROW(shard.shard.next_frozen(1), CancelledError);
  EXPECT_NE(shard.shard.mark(2).version, first.version);
  EXPECT_THROW(shard.shard.begin_save(1), FailedPreconditionError);
}

TEST(ShardMark, SlotsAddedAfterTheMarkDoNotReachItsBlocks) {
  ShardHarness shard({whole_table(0, variable("w", {kRows, 8}), {RuleKind::kAssign, {}})});
  shard.push_whole(shard.step(1), 0, Floats(kRows * 8, 2.0f), {RuleKind::kAssign, {}});
  shard.shard.mark(1);
  shard.shard.configure({ShardHarness::kSession,
                         2,
                         42,
                         {whole_table(0, variable("w", {kRows, 8}), adagrad())},
                         ShardHarness::kEpoch});
  shard.push_whole(shard.step(2), 0, Floats(kRows * 8, 1.0f), adagrad());
  ShardHarness restored({whole_table(0, variable("w", {kRows, 8}), sgd())});
  restore(restored.shard, shard.frozen(1));
  EXPECT_EQ(restored.pull_whole(0), Floats(kRows * 8, 2.0f));
}

TEST(ShardRestore, AppliedClosuresStayAppliedAndOldPullsAreRefused) {
  ShardHarness shard(model(sgd()));
  train(shard, 3, sgd());
  const ShardVersion before = shard.shard.version();
  const MarkResult mark = shard.shard.mark(1);
  const auto records = shard.frozen(1);
  shard.shard.drop_mark(1);
  restore(shard.shard, records, mark.applied);

  EXPECT_TRUE(shard.push(shard.step(3, 0), 0, {0}, Floats(16, 1)).duplicate);
  EXPECT_THROW(shard.push(shard.step(4), 0, {0}, Floats(16, 1), sgd(), before), AbortedError);
  EXPECT_FALSE(
      shard.push(shard.step(4), 0, {0}, Floats(16, 1), sgd(), shard.shard.version()).duplicate);
}

TEST(ShardRestore, AnotherShapeIsRefusedAndTheShardStaysClosed) {
  ShardHarness saved({whole_table(0, variable("w", {4, 2}), sgd())});
  saved.push_whole(saved.step(1), 0, Floats(8, 1));
  saved.shard.mark(1);
  const auto records = saved.frozen(1);
  ShardHarness other({whole_table(0, variable("w", {4, 3}), sgd())});
  try {
    restore(other.shard, records);
    ADD_FAILURE() << "restored into another shape";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("[4, 2]"), testing::HasSubstr("[4, 3]"),
                               testing::HasSubstr("'w'")));
  }
  EXPECT_THROW(other.shard.open(), FailedPreconditionError);
  EXPECT_THROW(other.pull_whole(0), UnavailableError);
}

TEST(ShardRestore, WhatTheCheckpointDoesNotHaveIsReportedAndKeepsItsInitialValues) {
  ShardHarness saved({whole_table(0, variable("w", {4, 2}), sgd())});
  saved.shard.mark(1);
  const auto records = saved.frozen(1);
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd()),
                      whole_table(1, variable("new", {3}, Initializer::constant(5)), sgd())});
  shard.push_whole(shard.step(1), 1, Floats(3, 1));
  shard.shard.begin_restore();
  for (const auto& [key, record] : records)
    shard.shard.restore(std::get<storage::TableRecord>(record));
  EXPECT_THAT(shard.shard.end_restore({}).missing, ElementsAre("new"));
  shard.shard.open();
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(5, 5, 5));
}

TEST(ShardRestore, OfOneVariableLeavesTheOthersAndWhatTheyHadApplied) {
  ShardHarness saved({whole_table(0, variable("late", {4, 2}), sgd())});
  saved.push_whole(saved.step(1), 0, Floats(8, 1));
  const MarkResult mark = saved.shard.mark(1);
  const auto records = saved.frozen(1);

  ShardHarness shard({whole_table(0, variable("early", {2}), sgd())});
  shard.push_whole(shard.step(9), 0, {1, 2});
  shard.shard.configure({ShardHarness::kSession,
                         2,
                         42,
                         {whole_table(1, variable("late", {4, 2}), sgd())},
                         ShardHarness::kEpoch});
  shard.shard.begin_restore({1});
  EXPECT_EQ(shard.shard.ranges().size(), 1u);
  for (const auto& [key, record] : records)
    if (const auto* rows = std::get_if<storage::StoredRows>(&record))
      shard.shard.restore(*rows, key.variable);
  shard.shard.end_restore(mark.applied);
  shard.shard.open();

  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -2));
  EXPECT_EQ(shard.pull_whole(1), Floats(8, -1));
  EXPECT_TRUE(shard.push_whole(shard.step(9), 0, {1, 2}).duplicate);
  EXPECT_TRUE(shard.push_whole(shard.step(1), 0, {1, 2}).duplicate);
}

TEST(ShardRestore, OneThatHadNotEndedIsForgottenByANewSession) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())});
  const std::uint64_t old = shard.shard.begin_restore();
  shard.shard.configure(
      {ShardHarness::kSession + 1, 1, 42, {whole_table(0, variable("w", {4, 2}), sgd())}});
  shard.shard.open();
  EXPECT_TRUE(shard.shard.is_open());
  EXPECT_THROW(shard.shard.verify_restore(old), CancelledError);
  EXPECT_EQ(shard.shard.mark(1).applied, AppliedSet());
}

TEST(ShardRestore, GoesNoFurtherOnceAnotherConnectionIsInCharge) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())});
  shard.shard.mark(1);
  shard.shard.change_hands();
  EXPECT_THROW(shard.shard.begin_save(1), FailedPreconditionError);
  const std::uint64_t first = shard.shard.begin_restore();
  shard.shard.verify_restore(first);
  shard.shard.change_hands();
  EXPECT_THROW(shard.shard.verify_restore(first), CancelledError);
  EXPECT_THROW(shard.shard.open(), FailedPreconditionError);  // half of a model
  const std::uint64_t second = shard.shard.begin_restore();
  EXPECT_THROW(shard.shard.verify_restore(first), CancelledError);
  shard.shard.verify_restore(second);
  shard.shard.end_restore({});
  EXPECT_THROW(shard.shard.verify_restore(second), CancelledError);
  shard.shard.open();
}

TEST(ShardRestore, OfEverythingFromNothingIsANewBeginning) {
  ShardHarness shard({whole_table(0, variable("w", {2}), sgd())});
  shard.push_whole(shard.step(3), 0, {1, 2});
  shard.shard.configure({ShardHarness::kSession, 2, 42, {}, ShardHarness::kEpoch});
  shard.shard.begin_restore();
  shard.shard.end_restore({});
  shard.shard.open();

  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0));
  // it was sent by an older layout
  EXPECT_THROW(shard.push_whole(shard.step(3), 0, {1, 2}), AbortedError);
  StepContext again = shard.step(3);
  again.sent_layout = 2;
  EXPECT_FALSE(shard.push_whole(again, 0, {1, 2}).duplicate);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -2));
}

TEST(ShardRestore, SlotsWaitForTheOptimizerThatClaimsThem) {
  ShardHarness saved({whole_table(0, variable("w", {4, 2}), adagrad())});
  saved.push_whole(saved.step(1), 0, Floats(8, 1), adagrad());
  saved.shard.mark(1);
  const auto records = saved.frozen(1);

  ShardHarness late({whole_table(0, variable("w", {4, 2}), {RuleKind::kAssign, {}})});
  restore(late.shard, records);
  late.shard.configure({ShardHarness::kSession,
                        2,
                        42,
                        {whole_table(0, variable("w", {4, 2}), adagrad())},
                        ShardHarness::kEpoch});

  late.push_whole(late.step(2), 0, Floats(8, 1), adagrad());
  saved.push_whole(saved.step(2), 0, Floats(8, 1), adagrad());
  EXPECT_EQ(late.pull_whole(0), saved.pull_whole(0));
}

TEST(ShardRestore, ResetsTouchedRowsThatTheCheckpointLacks) {
  const auto tables = {whole_table(0, variable("w", {200, 2}, Initializer::uniform(-1, 1)), sgd())};
  ShardHarness saved(tables), shard(tables);
  const Floats initial = saved.pull_whole(0);
  saved.push(saved.step(1), 0, {0, 65}, {1, 2, 3, 4});
  saved.shard.mark(1);
  const auto records = saved.frozen(1);
  Ids others;
  for (std::int64_t row = 60; row < 130; ++row) others.push_back(row);
  shard.push(shard.step(1), 0, others, Floats(others.size() * 2, 9));

  shard.shard.begin_restore();  // given up
  restore(shard.shard, records);

  EXPECT_EQ(shard.pull_whole(0), saved.pull_whole(0));
  EXPECT_NE(shard.pull_whole(0), initial);
  shard.shard.mark(2);
  EXPECT_EQ(shard.frozen(2), records);
}

TEST(ShardRestore, SlotsThatTheCheckpointLacksAreInitialOverOldOnesToo) {
  const auto w = variable("w", {4, 2});
  ShardHarness saved({whole_table(0, w, sgd())});
  saved.push_whole(saved.step(1), 0, Floats(8, 1));
  saved.shard.mark(1);
  const auto records = saved.frozen(1);
  ShardHarness fresh({whole_table(0, w, adagrad())}), used({whole_table(0, w, adagrad())});
  used.push_whole(used.step(1), 0, Floats(8, 3), adagrad());
  for (ShardHarness* shard : {&fresh, &used}) {
    restore(shard->shard, records);
    shard->push_whole(shard->step(2), 0, Floats(8, 1), adagrad());
  }
  EXPECT_EQ(used.pull_whole(0), fresh.pull_whole(0));
}

}  // namespace
}  // namespace cairn::ps
