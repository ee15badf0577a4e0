// The subscriber on a simulated network, in virtual time.
#include "serving/follow/row_subscriber.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/serving/follow/followed_ps.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Rows = RowCopy::Rows;

std::vector<ps::TableConfig> two_tables() {
  return {ps::whole_table(0, ps::variable("dense", {100, 2}), ps::sgd()),
          hashed_table(1, "hashed")};
}

// A ps of two shards, of which the first has tables, and one that follows it.
class Following {
 public:
  explicit Following(RowStreamOptions options = {}) : options_(std::move(options)) {
    client.configure(two_tables());
    client.open();
    other.configure({});
    other.open();
    options_.ps = {"sim://ps"};
    options_.cluster = "test";
    subscribe();
  }
  void subscribe() {
    subscriber = std::make_unique<RowSubscriber>(ps.reactor, ps.network.host("server"), options_,
                                                 ++number_, [] {});
  }
  void run(Duration time) {
    for (Duration passed{0}; passed < time; passed += 10ms) {
      ps.reactor.advance(10ms);
      take();
    }
  }
  std::size_t take() {
    std::size_t rows = 0;
    for (const auto& delivery : subscriber->take()) {
      for (const RowChanges& changes : delivery.changes) {
        rows += changes.rows.size();
        copy.apply(changes);
      }
      if (!delivery.changes.empty() || delivery.progress.complete)
        progress[delivery.shard] = delivery.progress;
    }
    return rows;
  }
  void push(const std::vector<std::int64_t>& rows, VariableId variable = 1) {
    push_rows(client, ++closure_, variable, rows, 2);
  }

  ps::SimulatedPs ps{2};
  ps::ShardClient client = ps.client(0), other = ps.client(1);
  RowCopy copy;
  std::map<std::size_t, ShardProgress> progress;
  std::unique_ptr<RowSubscriber> subscriber;

 private:
  RowStreamOptions options_;
  std::uint64_t number_ = 10, closure_ = 0;
};

TEST(RowSubscriber, FollowsEveryShardOfAPs) {
  Following following;
  following.run(1s);
  EXPECT_EQ(following.subscriber->shards(), 2u);
  EXPECT_TRUE(following.subscriber->all_known());
  EXPECT_TRUE(following.progress[0].complete && following.progress[1].complete);
}

TEST(RowSubscriber, TakesOnlyTheVariablesOfItsOptions) {
  Following following({.variables = {"dense"}});
  following.push({1, 2}, 0);
  following.push({3}, 1);
  following.run(1s);
  EXPECT_EQ(following.copy.of("dense"), (Rows{{1, {1, 1}}, {2, {1, 1}}}));
  EXPECT_EQ(following.copy.of("hashed"), Rows());
  EXPECT_NO_THROW(following.subscriber->verify());
}

TEST(RowSubscriber, AVariableThatNoPsHasIsAnErrorThatSaysWhatTheyHave) {
  Following following({.variables = {"hushed"}});
  following.run(5s);
  EXPECT_NO_THROW(following.subscriber->verify());  // it may still be made
  following.run(10s);
  try {
    following.subscriber->verify();
    FAIL() << "no ps has it";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("dense, hashed"));
  }
}

TEST(RowSubscriber, WhoTakesNothingIsSentNothingAndGetsTheNewestAfterwards) {
  Following following;
  following.run(1s);
  for (int i = 0; i < 50; ++i) {
    following.push({1});
    following.ps.reactor.advance(1s);
  }
  EXPECT_EQ(following.take(), 1u);  // what was asked for before
  following.run(1s);
  EXPECT_EQ(following.copy.of("hashed"), (Rows{{1, {50, 50}}}));
}

TEST(RowSubscriber, TakesNoMoreBytesASecondThanItIsToldTo) {
  std::vector<std::int64_t> rows(100);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  Following following({.bytes_per_second = 200'000});
  following.run(1s);
  std::size_t taken = 0;
  for (int i = 0; i < 100; ++i) {  // each has 1,600 bytes and changes all that there is
    following.push(rows, 0);
    following.ps.reactor.advance(1ms);
    taken += following.take();
  }
  // A tenth of a second, more or less, for each of two shards a half.
  EXPECT_LE(taken * 16, 20'000u + 3'200u);
  following.run(1s);
  EXPECT_EQ(following.copy.of("dense").at(99), (RowCopy::Row{100, 100}));
}

TEST(RowSubscriber, AChangeIsThereWithinAPauseAndAWayAndTheAgeSaysSo) {
  Following following;
  following.run(1s);
  following.push({7});
  const TimePoint pushed = following.ps.reactor.clock().now();
  following.run(50ms);
  EXPECT_EQ(following.copy.of("hashed"), (Rows{{7, {1, 1}}}));
  EXPECT_GE(following.progress[0].covered, pushed);
}

TEST(RowSubscriber, CatchesUpWithAPsThatWasAwayAndNamesItMeanwhile) {
  Following following;
  following.push({1});
  following.run(1s);
  const TimePoint covered = following.progress[0].covered;
  following.ps.network.cut("server", "ps");
  following.push({1, 2});
  following.run(60s);
  ASSERT_EQ(following.subscriber->away().size(), 2u);
  EXPECT_THAT(following.subscriber->away()[0].address, HasSubstr("sim://ps shard 0"));
  EXPECT_LE(following.progress[0].covered, covered + 50ms);

  following.ps.network.heal("server", "ps");
  following.run(5s);
  EXPECT_EQ(following.copy.of("hashed"), (Rows{{1, {2, 2}}, {2, {1, 1}}}));
  EXPECT_TRUE(following.subscriber->away().empty());
}

TEST(RowSubscriber, BeginsAnewWhereTheRowsWereRestored) {
  Following following;
  following.push({1, 2});
  following.run(1s);
  following.client.restore("", {});  // from no database: a new beginning
  following.client.open();
  following.push({3});
  following.run(5s);
  EXPECT_EQ(following.copy.of("hashed"), (Rows{{3, {1, 1}}}));
  EXPECT_TRUE(following.progress[0].complete);
}

TEST(RowSubscriber, AnotherTokenIsARefusal) {
  ps::SimulatedPs ps;
  RowSubscriber subscriber(ps.reactor, ps.network.host("server"),
                           {.ps = {"sim://ps"}, .cluster = "test", .token = "wrong"}, 3, [] {});
  ps.reactor.advance(1s);
  EXPECT_THROW(subscriber.verify(), PermissionDeniedError);
}

TEST(RowSubscriber, NeedsTheAddressOfAPs) {
  ps::SimulatedPs ps;
  EXPECT_THROW(RowSubscriber(ps.reactor, ps.network.host("server"), {}, 3, [] {}),
               InvalidArgumentError);
  EXPECT_THROW(
      RowSubscriber(ps.reactor, ps.network.host("server"), {.ps = {"no address"}}, 3, [] {}),
      InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::serving
