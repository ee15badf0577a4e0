#include "ps/follow/subscriptions.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TableConfig hashed_table(VariableId id, RowPolicy policy = {}) {
  VariableSpec spec{.name = str("hashed ", id), .shape = {std::int64_t{1} << 40, 1}};
  spec.hashed = true;
  spec.policy = policy;
  return whole_table(id, std::make_shared<const VariableSpec>(spec), sgd());
}

// A shard, and a subscriber that knows its tables and follows its cursor.
class Followed {
 public:
  explicit Followed(std::vector<TableConfig> tables)
      : harness(std::move(tables)), subscriptions(harness.shard, harness.clock) {}

  ChangesAnswer ask(std::size_t bytes_max = 1 << 20) {
    harness.clock.advance(std::chrono::milliseconds(1));
    request.described = harness.shard.describe().described;
    request.bytes_max = bytes_max;
    return subscriptions.changes(request);
  }
  // An answer that arrives.
  ChangesAnswer take(std::size_t bytes_max = 1 << 20) {
    ChangesAnswer answer = ask(bytes_max);
    request.incarnation = answer.incarnation;
    request.cursor = answer.cursor;
    return answer;
  }
  void push(const Ids& ids, VariableId variable = 0, UpdateRule rule = sgd()) {
    harness.push(harness.step(++closure_), variable, ids, Floats(ids.size(), -1), rule);
  }
  static Floats values(const ChangesAnswer& answer) {
    Floats out(answer.changed.values.size() / sizeof(float));
    if (!out.empty())
      std::memcpy(out.data(), answer.changed.values.data(), answer.changed.values.size());
    return out;
  }

  ShardHarness harness;
  Subscriptions subscriptions;
  ChangesRequest request{.subscriber = 5, .variables = {}, .from = "a test"};

 private:
  std::uint64_t closure_ = 0;
};

TEST(Subscriptions, ARowThatChangesOftenIsSentOnceAsItIsNow) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  followed.take();
  for (int i = 0; i < 3; ++i) followed.push({7});
  followed.push({9});

  const ChangesAnswer answer = followed.take();

  EXPECT_THAT(answer.changed.rows, ElementsAre(7, 9));
  EXPECT_EQ(Followed::values(answer), (Floats{3, 1}));
  EXPECT_TRUE(followed.take().changed.rows.empty());
}

TEST(Subscriptions, ABeginningHasTheRowsThatWereEverTouchedAndSaysWhenItIsComplete) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd()), hashed_table(1)});
  followed.push({3, 4, 5});
  followed.push({1'000'000}, 1);

  const ChangesAnswer answer = followed.take();

  EXPECT_THAT(answer.changed.rows, ElementsAre(3, 4, 5, 1'000'000));
  ASSERT_EQ(answer.changed.tables.size(), 2u);
  for (const auto& table : answer.changed.tables) EXPECT_TRUE(table.begins && table.complete);
  EXPECT_EQ(answer.age, Duration(0));
  EXPECT_FALSE(answer.more);
}

TEST(Subscriptions, RowsOfALostAnswerComeAgainAsTheyAreByThen) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  followed.take();
  followed.push({1, 2});
  followed.ask();  // does not arrive
  followed.push({2, 3});

  const ChangesAnswer again = followed.take();

  EXPECT_THAT(again.changed.rows, ElementsAre(1, 2, 3));
  EXPECT_EQ(Followed::values(again), (Floats{1, 2, 1}));
  EXPECT_TRUE(followed.take().changed.rows.empty());
}

TEST(Subscriptions, SeveralAnswersMayBeLostOneAfterTheOther) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  const std::uint64_t incarnation = followed.take().incarnation;
  followed.push({1});
  for (int i = 0; i < 3; ++i) followed.ask();

  const ChangesAnswer answer = followed.take();

  EXPECT_EQ(answer.incarnation, incarnation);
  EXPECT_THAT(answer.changed.rows, ElementsAre(1));
}

TEST(Subscriptions, AnotherCursorOrIncarnationBeginsAnew) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  followed.push({1});
  const std::uint64_t incarnation = followed.take().incarnation;
  followed.take();
  for (const bool cursor : {true, false}) {
    cursor ? followed.request.cursor -= 2 : followed.request.incarnation += 2;
    const ChangesAnswer answer = followed.take();
    EXPECT_NE(answer.incarnation, incarnation);
    EXPECT_THAT(answer.changed.rows, ElementsAre(1));
    EXPECT_TRUE(answer.changed.tables.at(0).begins);
  }
}

TEST(Subscriptions, AnAnswerIsSmallAndNoRowWaitsForOthersThatChangeAllTheTime) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  followed.take();
  Ids all(100);
  for (std::int64_t row = 0; row < 100; ++row) all[static_cast<std::size_t>(row)] = row;
  followed.push(all);
  std::map<std::int64_t, int> came;
  for (int i = 0; i < 25; ++i) {
    const ChangesAnswer answer = followed.take(48);  // four rows
    EXPECT_LE(answer.changed.bytes(), 48u);
    for (const std::int64_t row : answer.changed.rows) ++came[row];
    followed.push({0, 1, 2, 3, 4, 5, 6, 7});
  }
  EXPECT_EQ(came.size(), 100u);
}

TEST(Subscriptions, TheAgeSaysHowLongTheOldestChangeMayHaveWaited) {
  Followed followed({whole_table(0, variable("dense", {100, 1}), sgd())});
  followed.take();
  followed.push({1, 2, 3, 4});
  const ChangesAnswer first = followed.take(24);  // two rows
  EXPECT_GE(first.age, std::chrono::milliseconds(1));
  EXPECT_TRUE(first.more);
  const ChangesAnswer last = followed.take();
  EXPECT_EQ(last.age, Duration(0));
  EXPECT_FALSE(last.more);
}

TEST(Subscriptions, ARowThatGoesForGoodIsToldAndOneThatIsBornAgainIsARow) {
  RowPolicy policy;
  policy.evictable = true;
  Followed followed({hashed_table(0, policy)});
  followed.push({5, 6});
  followed.take();
  followed.push({5, 6}, 0, eviction_rule());
  followed.push({6});

  const ChangesAnswer answer = followed.take();

  EXPECT_THAT(answer.changed.gone, ElementsAre(5));
  EXPECT_THAT(answer.changed.rows, ElementsAre(6));
  EXPECT_EQ(Followed::values(answer), Floats{1});
}

TEST(Subscriptions, ATableOfWhichTooManyRowsWentMeanwhileBeginsAnew) {
  RowPolicy policy;
  policy.evictable = true;
  Followed followed({hashed_table(0, policy)});
  followed.push({5});
  followed.take();
  Ids ids(50'000);
  for (std::int64_t first = 1000; first < 1000 + static_cast<std::int64_t>(TableChanges::kAwayMax);
       first += static_cast<std::int64_t>(ids.size())) {
    std::iota(ids.begin(), ids.end(), first);
    followed.push(ids);
    followed.push(ids, 0, eviction_rule());
  }

  const ChangesAnswer answer = followed.take();

  ASSERT_EQ(answer.changed.tables.size(), 1u);
  EXPECT_TRUE(answer.changed.tables[0].begins && answer.changed.tables[0].complete);
  EXPECT_THAT(answer.changed.rows, ElementsAre(5));
  EXPECT_TRUE(answer.changed.gone.empty());
}

TEST(Subscriptions, ATableThatIsRestoredBeginsAnewAndTheOthersGoOn) {
  Followed followed({whole_table(0, variable("one", {10, 1}), sgd()),
                     whole_table(1, variable("other", {10, 1}), sgd())});
  followed.push({1}, 0);
  followed.push({1}, 1);
  followed.take();
  followed.harness.shard.begin_restore({0});
  followed.harness.shard.end_restore({});
  followed.harness.shard.open();

  const ChangesAnswer answer = followed.take();

  ASSERT_EQ(answer.changed.tables.size(), 1u);
  EXPECT_EQ(answer.changed.tables[0].variable, 0u);
  EXPECT_TRUE(answer.changed.tables[0].begins && answer.changed.tables[0].complete);
  EXPECT_TRUE(answer.changed.rows.empty());
}

TEST(Subscriptions, ATableThatComesLaterIsAnotherDescriptionAndBeginsByItself) {
  Followed followed({whole_table(0, variable("one", {10, 1}), sgd())});
  followed.push({1});
  followed.take();
  followed.harness.shard.configure({ShardHarness::kSession,
                                    2,
                                    42,
                                    {whole_table(1, variable("other", {10, 1}), sgd())},
                                    ShardHarness::kEpoch});
  ChangesRequest outdated = followed.request;
  const ChangesAnswer refused = followed.subscriptions.changes(outdated);
  EXPECT_NE(refused.described, outdated.described);
  EXPECT_TRUE(refused.changed.tables.empty());

  const ChangesAnswer answer = followed.take();

  ASSERT_EQ(answer.changed.tables.size(), 1u);
  EXPECT_EQ(answer.changed.tables[0].variable, 1u);
}

TEST(Subscriptions, OnlyTheVariablesThatAreAskedForCome) {
  Followed followed({whole_table(0, variable("one", {10, 1}), sgd()),
                     whole_table(1, variable("other", {10, 1}), sgd())});
  followed.request.variables = {1};
  followed.push({1}, 0);
  followed.push({2}, 1);
  EXPECT_THAT(followed.take().changed.rows, ElementsAre(2));
  followed.request.variables = {};
  EXPECT_THAT(followed.take().changed.rows, ElementsAre(1));
}

TEST(Subscriptions, AGivenInitialValueComesRowForRow) {
  Followed followed({whole_table(
      0, variable("given", {3, 1}, Initializer::from(Tensor::of<float>({3, 1}, Floats{1, 2, 3}))),
      sgd())});
  EXPECT_EQ(Followed::values(followed.take()), (Floats{1, 2, 3}));
}

TEST(Subscriptions, ThereAreSixteenAndTheNextIsToldWhichTheyAre) {
  Followed followed({whole_table(0, variable("dense", {10, 1}), sgd())});
  for (std::uint64_t i = 1; i <= Subscriptions::kSubscribersMax; ++i) {
    followed.request = {.subscriber = i, .variables = {}, .from = str("server ", i)};
    followed.take();
  }
  followed.request = {.subscriber = 100, .variables = {}, .from = "one more"};
  try {
    followed.take();
    FAIL() << "a subscriber more than there may be";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("server 16"));
  }
  followed.harness.clock.advance(Subscriptions::kIdleMax);
  EXPECT_NO_THROW(followed.take());
  EXPECT_EQ(followed.subscriptions.size(), 1u);
  EXPECT_EQ(followed.harness.shard.counters().follow.subscribers.load(), 1u);
}

TEST(Subscriptions, AShardThatIsNotOpenAnswersNothing) {
  Followed followed({whole_table(0, variable("dense", {10, 1}), sgd())});
  followed.take();
  followed.harness.shard.begin_restore();
  EXPECT_THROW(followed.take(), UnavailableError);
}

TEST(Subscriptions, SayTheNewestStepThatTheRowsMayContain) {
  Followed followed({whole_table(0, variable("dense", {10, 1}), sgd())});
  StepContext step = followed.harness.step(1);
  step.global_step = 12;
  followed.harness.push(step, 0, {1}, {1});
  EXPECT_EQ(followed.take().step, 12);
}

}  // namespace
}  // namespace cairn::ps
