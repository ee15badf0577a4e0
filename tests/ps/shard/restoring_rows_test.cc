// Requests to a shard that is open while its rows are still in a checkpoint.
#include "ps/shard/restoring_rows.h"

#include <gmock/gmock.h>

#include <memory>
#include <utility>

#include "tests/ps/shard/row_waits_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// A checkpoint whose rows come when the test says so.
class FakeCheckpoint final : public CheckpointRows {
 public:
  struct Reading {
    std::vector<std::int64_t> rows;
    Done done;
  };
  void read(const Table& /*table*/, const std::vector<std::int64_t>& rows, Done done) override {
    reading.push_back({rows, std::move(done)});
  }
  void hurry(const Table& table) override { hurried.push_back(table.spec().name); }
  Reading take() {
    Reading first = std::move(reading.front());
    reading.erase(reading.begin());
    return first;
  }
  std::vector<Reading> reading;
  std::vector<std::string> hurried;
};

constexpr std::uint64_t kRestore = 2;  // the session has begun with the number before it
constexpr std::int64_t kHashed = std::int64_t{1} << 40;

std::shared_ptr<const VariableSpec> hashed_variable() {
  VariableSpec spec{.name = "h", .shape = {kHashed, 1}, .initializer = Initializer::zeros()};
  spec.hashed = true;
  return std::make_shared<const VariableSpec>(std::move(spec));
}

// "a" of eight rows, "b" of eight, which the checkpoint lacks, and "h", which is hashed.
class RestoringRowsTest : public testing::Test {
 protected:
  RestoringRowsTest() {
    lone.shard.begin_restore();
    record(whole_table(0, variable("a", {8, 1}), sgd()));
    record(whole_table(2, hashed_variable(), sgd()));
    lone.shard.end_restore_on_demand({}, checkpoint);
    lone.shard.open();
  }
  void record(const TableConfig& table) {
    const VariableSpec& spec = *table.spec;
    lone.shard.restore(storage::TableRecord{.variable = spec.name,
                                            .dtype = spec.dtype,
                                            .shape = spec.shape,
                                            .rule = table.rule,
                                            .slots = {},
                                            .rows = {0, spec.rows()}});
  }
  // Rows as the checkpoint has them: of each ten times its number.
  static storage::StoredRows stored(const Ids& rows) {
    storage::StoredRows block{.rule = RuleKind::kSgd, .dim = 1};
    Floats values;
    for (const std::int64_t row : rows) {
      block.offsets.push_back(static_cast<std::uint64_t>(row));
      values.push_back(10 * static_cast<float>(row));
    }
    const auto bytes = std::as_bytes(std::span(values));
    block.data.assign(bytes.begin(), bytes.end());
    return block;
  }
  void come(const Ids& rows) { checkpoint->take().done({stored(rows)}, nullptr); }
  void stream(const Ids& rows, const std::string& name = "a") {
    lone.shard.restore_later(stored(rows), name, 0);
  }

  std::unique_ptr<Asked> pull(const Ids& ids, VariableId variable = 0) {
    const ReadHeader header{variable, 0, static_cast<std::uint32_t>(ids.size()), false};
    return ask({lone.step(0), {&header, 1}, ids});
  }
  std::unique_ptr<Asked> pull_all(VariableId variable = 0) {
    const ReadHeader header{variable, 0, 0, true};
    return ask({lone.step(0), {&header, 1}, {}});
  }
  std::unique_ptr<Asked> ask(const PullRequest& request) {
    auto asked = std::make_unique<Asked>();
    if (!lone.shard.must_wait(request)) {
      asked->rows = lone.pull_request(request);
      return asked;
    }
    asked->wait = lone.shard.wait(request);
    const std::vector<ReadHeader> headers(request.headers.begin(), request.headers.end());
    const Ids ids(request.ids.begin(), request.ids.end());
    lone.shard.on_end(asked->wait, [this, to = asked.get(), headers, ids,
                                    step = request.step](const WaitOutcome& outcome) {
      to->error = outcome.error;
      if (to->error == nullptr) to->rows = lone.pull_request({step, headers, ids});
    });
    return asked;
  }
  std::unique_ptr<Asked> set(std::uint64_t closure, const Ids& ids, float value,
                             VariableId variable = 0) {
    return pushed_to(lone.push(lone.step(closure), variable, ids, Floats(ids.size(), value), kSet));
  }
  std::unique_ptr<Asked> pushed_to(const PushResult& result) {
    auto asked = std::make_unique<Asked>();
    asked->wait = result.waits;
    if (result.waits == 0)
      asked->pushed = result;
    else
      lone.shard.on_end(result.waits, [to = asked.get()](const WaitOutcome& outcome) {
        to->error = outcome.error;
        if (to->error == nullptr) to->pushed = outcome.pushed;
      });
    return asked;
  }

  const std::shared_ptr<FakeCheckpoint> checkpoint = std::make_shared<FakeCheckpoint>();
  ShardHarness lone{{whole_table(0, variable("a", {8, 1}), sgd()),
                     whole_table(1, variable("b", {8, 1}), sgd()),
                     whole_table(2, hashed_variable(), sgd())}};
};

TEST_F(RestoringRowsTest, APullWaitsForItsOwnRowsAlone) {
  const auto first = pull({3, 5});
  EXPECT_TRUE(first->waits());
  EXPECT_EQ(*pull({3}, 1)->rows, Floats({0}));  // the checkpoint lacks the variable
  ASSERT_EQ(checkpoint->reading.size(), 1u);
  EXPECT_THAT(checkpoint->reading[0].rows, ElementsAre(3, 5));
  come({3, 5});
  EXPECT_EQ(*first->rows, Floats({30, 50}));
  EXPECT_EQ(*pull({5})->rows, Floats({50}));
}

TEST_F(RestoringRowsTest, ARowThatTheCheckpointLacksIsLookedForOnce) {
  for (const VariableId variable : {0, 2}) {
    const auto first = pull({1, 2}, variable);
    come({2});
    EXPECT_EQ(*first->rows, Floats({0, 20}));
    EXPECT_EQ(*pull({1, 2}, variable)->rows, Floats({0, 20}));
    EXPECT_THAT(checkpoint->reading, IsEmpty());
  }
  EXPECT_EQ(lone.shard.counters().restore.rows, 2u);
}

// The stream brings such a row as it was before the update.
TEST_F(RestoringRowsTest, ARowThatWasUpdatedKeepsTheUpdateWhateverComes) {
  for (const VariableId variable : {0, 2}) {
    const auto push = set(1 + variable, {4}, 7, variable);
    EXPECT_TRUE(push->waits());
    come({4});
    EXPECT_TRUE(push->pushed.has_value());
    stream({3, 4, 5}, variable == 0 ? "a" : "h");
    EXPECT_EQ(*pull({3, 4, 5}, variable)->rows, Floats({30, 7, 50}));
    EXPECT_THAT(checkpoint->reading, IsEmpty());
  }
}

// The stream is faster than the read of single rows, and a push comes between the two.
TEST_F(RestoringRowsTest, ARowThatIsUpdatedWhileItIsReadKeepsTheUpdate) {
  const auto first = pull({4, 6});
  stream({4});
  EXPECT_TRUE(set(1, {4}, 7)->pushed.has_value());
  come({4, 6});
  EXPECT_EQ(*first->rows, Floats({7, 60}));
}

TEST_F(RestoringRowsTest, OfTwoDatabasesTheOneThatComesFirstCounts) {
  storage::StoredRows older = stored({2, 3});
  older.data.assign(older.data.size(), std::byte{0});
  stream({3});
  lone.shard.restore_later(older, "a", 0);
  EXPECT_EQ(*pull({2, 3})->rows, Floats({0, 30}));
}

TEST_F(RestoringRowsTest, WhatWantsEveryRowComesFirstAndWaitsForTheLast) {
  const auto whole = pull_all();
  const auto push = pushed_to(lone.push_whole(lone.step(1), 0, Floats(8, 1), kSet));
  EXPECT_TRUE(whole->waits() && push->waits());
  EXPECT_THAT(checkpoint->hurried, testing::Each("a"));
  stream({0, 1, 2, 3});
  EXPECT_TRUE(whole->waits());
  lone.shard.end_restore_later("a", 0);
  EXPECT_EQ(*whole->rows, Floats({0, 10, 20, 30, 0, 0, 0, 0}));
  EXPECT_TRUE(push->pushed.has_value());
  EXPECT_EQ(*pull({3})->rows, Floats({1}));
  lone.shard.count_restored_bytes(3 << 20, 4 << 20);
  EXPECT_EQ(lone.shard.still_restoring(), "'h' (3 of 4 MB are there)");
}

TEST_F(RestoringRowsTest, AfterTheLastRowNothingIsLookedFor) {
  lone.shard.end_restore_later("a", 0);
  lone.shard.end_restore_later("h", 0);
  EXPECT_EQ(lone.shard.still_restoring(), "");
  EXPECT_EQ(*pull({7}, 2)->rows, Floats({0}));
  EXPECT_THAT(checkpoint->reading, IsEmpty());
}

// A read that is under way when the last row has come brings nothing new.
TEST_F(RestoringRowsTest, APullGoesOnAlsoIfAllRowsHaveComeMeanwhile) {
  const auto first = pull({4});
  stream({4});
  lone.shard.end_restore_later("a", 0);
  EXPECT_TRUE(set(1, {4}, 7)->pushed.has_value());
  come({4});
  EXPECT_EQ(*first->rows, Floats({7}));
}

TEST_F(RestoringRowsTest, NothingIsMarkedBeforeTheLastRow) {
  EXPECT_THAT([&] { lone.shard.mark(1); },
              ThrowsMessage<UnavailableError>(
                  HasSubstr("rows of 'a', 'h' (0 of 0 MB are there) are still being restored")));
  lone.shard.end_restore_later("a", 0);
  lone.shard.end_restore_later("h", 0);
  EXPECT_NO_THROW(lone.shard.mark(1));
}

TEST_F(RestoringRowsTest, RowsOfAnEarlierRestoreAreToldApart) {
  EXPECT_TRUE(lone.shard.restores_later(kRestore, "a", 0));
  EXPECT_FALSE(lone.shard.restores_later(kRestore, "b", 0));
  EXPECT_FALSE(lone.shard.restores_later(kRestore - 1, "a", 0));
}

TEST_F(RestoringRowsTest, AnErrorEndsTheRequestsThatWaitAndThoseThatComeLater) {
  const auto whole = pull_all();
  lone.shard.fail_restore_later(kRestore,
                                std::make_exception_ptr(DataLossError("file 7 is damaged")));
  EXPECT_EQ(whole->code(), Code::kDataLoss);
  const auto late = pull({3}, 2);
  EXPECT_TRUE(late->waits());
  checkpoint->take().done({}, nullptr);
  EXPECT_EQ(late->code(), Code::kDataLoss);
}

// Also if a read for the first one ends in the second.
TEST_F(RestoringRowsTest, AnotherRestoreBeginsAnew) {
  const auto first = pull({4});
  lone.shard.begin_restore();
  EXPECT_EQ(first->code(), Code::kUnavailable);
  record(whole_table(0, variable("a", {8, 1}), sgd()));
  lone.shard.end_restore_on_demand({}, checkpoint);
  lone.shard.open();
  const auto second = pull({4});
  EXPECT_TRUE(second->waits());
  ASSERT_EQ(checkpoint->reading.size(), 2u);
  checkpoint->take().done({stored({4, 5})}, nullptr);  // of the first
  EXPECT_TRUE(second->waits());
  come({});
  EXPECT_EQ(*second->rows, Floats({0}));
}

TEST_F(RestoringRowsTest, ARestoreOfOtherVariablesLeavesTheRowsThatAreToCome) {
  lone.shard.begin_restore({1});
  lone.shard.end_restore({});
  lone.shard.open();
  const auto first = pull({4});
  come({4});
  EXPECT_EQ(*first->rows, Floats({40}));
}

// The rows come with the slots of the rule before it.
TEST_F(RestoringRowsTest, SlotsOfAnotherRuleAreNotTaken) {
  lone.shard.configure({ShardHarness::kSession,
                        2,
                        42,
                        {whole_table(0, variable("a", {8, 1}), adagrad(0.5f))},
                        ShardHarness::kEpoch});
  stream({3});
  EXPECT_EQ(*pull({3})->rows, Floats({30}));
}

TEST_F(RestoringRowsTest, RowsFromBeforeTheRestoreAreGone) {
  lone.shard.end_restore_later("a", 0);
  set(1, {4, 5}, 7);
  lone.shard.begin_restore();
  record(whole_table(0, variable("a", {8, 1}), sgd()));
  lone.shard.end_restore_on_demand({}, checkpoint);
  lone.shard.open();
  const auto both = pull({4, 5});
  come({4});
  EXPECT_EQ(*both->rows, Floats({40, 0}));
}

}  // namespace
}  // namespace cairn::ps
