// Events on a shard while requests wait for rows: each event sees a request whole or not at all.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/ps/shard/row_waits_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(RowWaitsTest, AMarkSeesAPushThatWaitsNotAtAll) {
  source.hold("a", 3, 30);
  push(shard.step(1), {1}, 1);
  const auto waits = push(shard.step(2), {1, 3}, 2);
  const MarkResult marked = shard.shard.mark(1);
  EXPECT_THAT(marked.applied.closures, ElementsAre(std::pair<std::uint64_t, std::uint64_t>(1, 2)));
  source.release();
  EXPECT_FALSE(waits->waits());
  Floats saved;
  for (const auto& [key, record] : shard.frozen(1))
    if (const auto* rows = std::get_if<storage::StoredRows>(&record); rows && key.variable == "a") {
      EXPECT_THAT(rows->offsets, ElementsAre(0));
      float value = 0;
      std::memcpy(&value, rows->data.data(), sizeof value);
      saved.push_back(value);
    }
  EXPECT_THAT(saved, ElementsAre(1));  // row 1 as it was
  EXPECT_THAT(*pull({1, 3})->rows, ElementsAre(2, 2));
}

TEST_F(RowWaitsTest, AFenceRefusesWhatItsWorkerHasWaitingAndTheRetryElsewhereLandsOnce) {
  source.hold("a", 3, 30);
  const auto lost = push(shard.step(1, 0, 1), {3, 5}, 1), other = push(shard.step(2, 0, 2), {5}, 2);
  shard.shard.fence(ShardHarness::kSession, 1, {});
  EXPECT_EQ(lost->code(), Code::kCancelled);
  EXPECT_FALSE(other->waits());  // the push it waited for has gone
  const auto retry = push(shard.step(1, 0, 2), {3, 5}, 1);
  source.release();
  EXPECT_FALSE(retry->pushed->duplicate);
  EXPECT_THAT(*pull_request({shard.step(0, 0, 2), {}, {}})->rows, IsEmpty());
  EXPECT_EQ(shard.shard.version().counter, 2u);
}

TEST_F(RowWaitsTest, AnUpdateThatIsGivenUpFreesThoseBehindItButNotThoseBehindAnother) {
  source.hold("a", 3, 30);
  const auto first = push(shard.step(1), {3, 5}, 1), middle = push(shard.step(2), {5, 6}, 2),
             behind_middle = push(shard.step(3), {6}, 3), behind_both = push(shard.step(4), {5}, 4);
  shard.shard.give_up(middle->wait);
  EXPECT_TRUE(middle->waits());  // give_up() calls no callback
  EXPECT_FALSE(behind_middle->waits());
  EXPECT_TRUE(behind_both->waits());
  source.release();
  EXPECT_THAT(*pull({3, 5, 6})->rows, ElementsAre(1, 4, 3));
  EXPECT_FALSE(push(shard.step(2), {6}, 2)->pushed->duplicate);  // it was never done
  shard.shard.give_up(middle->wait);                             // nor is it there any more
}

TEST_F(RowWaitsTest, ANewSessionRefusesWhatWaitsAndTakesNoRowsOfTheOldOne) {
  source.hold("a", 3, 30);
  const auto push_waits = push(shard.step(1), {3}, 1), pull_waits = pull({3});
  shard.shard.configure(
      {8, 1, 42, {whole_table(0, variable("a", {8, 1}), sgd())}, ShardHarness::kEpoch});
  EXPECT_EQ(push_waits->code(), Code::kFailedPrecondition);
  EXPECT_EQ(pull_waits->code(), Code::kFailedPrecondition);
  EXPECT_THAT(source.resets, testing::UnorderedElementsAre("a", "b"));
  source.fetching[0].fetched({{.dim = 1, .first_row = 3, .offsets = {0}, .data = {4, {}}}},
                             nullptr);
  shard.shard.announce(8, 10, 0);
  shard.shard.open();
  StepContext step = shard.step(0);
  step.session = 8;
  const ReadHeader whole{0, 0, 0, true};
  EXPECT_THAT(*pull_request({step, {&whole, 1}, {}})->rows, testing::Each(0));
}

TEST_F(RowWaitsTest, ARestoreRefusesWhatWaitsAndTakesNoRowsOfBefore) {
  source.hold("a", 3, 30);
  const auto push_waits = push(shard.step(1), {3}, 1), pull_waits = pull({3});
  const auto late = source.fetching;
  restore(shard.shard, {});
  EXPECT_EQ(push_waits->code(), Code::kUnavailable);
  EXPECT_EQ(pull_waits->code(), Code::kUnavailable);
  late[0].fetched({{.dim = 1, .first_row = 3, .offsets = {0}, .data = {4, std::byte{1}}}}, nullptr);
  EXPECT_THAT(*pull({3})->rows, ElementsAre(0));
  // Nor is the row taken for one that is still on its way.
  source.fetching.clear();
  source.hold("a", 3, 33);
  const auto again = pull({3});
  source.release_all();
  EXPECT_THAT(*again->rows, ElementsAre(33));
}

TEST_F(RowWaitsTest, TheSumOfARoundWaitsForItsRows) {
  source.hold("a", 3, 30);
  StepContext member = shard.step(1);
  member.round = 1;
  EXPECT_FALSE(push(member, {3}, 2, 0, sgd())->waits());
  const RoundMember alone{1, 1};
  const auto applied = pushed(shard.shard.apply_round({ShardHarness::kSession, 1, {&alone, 1}}));
  EXPECT_TRUE(applied->waits());
  const auto read = pull({3});
  EXPECT_TRUE(read->waits());
  source.release_all();
  EXPECT_FALSE(applied->waits());
  EXPECT_THAT(*read->rows, ElementsAre(28));
}

}  // namespace
}  // namespace cairn::ps
