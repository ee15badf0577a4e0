// A bound on the rows that are copied aside during a save: pushes of rows that would need more wait
// until the writer has their blocks, or the save ends.
#include <gmock/gmock.h>

#include <cstring>

#include "core/base/error.h"
#include "tests/ps/shard/row_waits_fixture.h"

namespace cairn::ps {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::int64_t kWideDim = 1024;      // 16 rows are a block of 64 KB
constexpr std::size_t kRowsOfTheBound = 15;  // in one slab, with a few bytes each beside them

// A table of four blocks, all of it touched, and one under Adam.
class SaveMemoryTest : public testing::Test {
 protected:
  SaveMemoryTest() {
    for (const VariableId variable : {0u, 1u})
      shard.push_whole(shard.step(++closure_), variable, Floats(64 * kWideDim, 1), kSet);
  }
  std::unique_ptr<Asked> push(const Ids& rows, float value, UpdateRule rule = kSet,
                              VariableId variable = 0) {
    return push(shard.step(++closure_), rows, value, rule, variable);
  }
  std::unique_ptr<Asked> push(const StepContext& step, const Ids& rows, float value,
                              UpdateRule rule = kSet, VariableId variable = 0) {
    return watched(shard.push(step, variable, rows, Floats(rows.size() * kWideDim, value), rule));
  }
  std::unique_ptr<Asked> watched(const PushResult& result) {
    auto asked = std::make_unique<Asked>();
    if (result.waits == 0)
      asked->pushed = result;
    else
      shard.shard.on_end(result.waits, [to = asked.get()](const WaitOutcome& outcome) {
        to->error = outcome.error;
        if (to->error == nullptr) to->pushed = outcome.pushed;
      });
    return asked;
  }
  static Ids rows(std::int64_t begin, std::int64_t count) {
    Ids all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = begin + static_cast<std::int64_t>(i);
    return all;
  }
  // The first element of each row.
  Floats firsts(const Ids& ids, VariableId variable = 0) {
    const Floats all = shard.pull(variable, ids);
    Floats firsts;
    for (std::size_t i = 0; i < all.size(); i += kWideDim) firsts.push_back(all[i]);
    return firsts;
  }
  // Takes records up to and with the `blocks`th block of rows; the first element of each of their
  // rows.
  Floats take(int blocks) {
    Floats firsts;
    while (blocks > 0) {
      const auto record = shard.shard.next_frozen(kCut);
      if (!record.has_value()) break;
      const auto* stored = std::get_if<storage::StoredRows>(&record->second);
      if (stored == nullptr) continue;
      --blocks;
      for (std::size_t i = 0; i < stored->offsets.size(); ++i) {
        float first = 0;
        std::memcpy(&first, stored->data.data() + i * stored->row_bytes(), sizeof first);
        firsts.push_back(first);
      }
    }
    return firsts;
  }
  void begin_save() {
    shard.shard.mark(kCut);
    shard.shard.begin_save(kCut);
  }

  static constexpr std::uint64_t kCut = 5;
  static ShardOptions options() {
    ShardOptions options{.lineage = 100};
    options.save_memory.bytes = CopyPool::kSlabBytes;
    return options;
  }
  ShardHarness shard{{whole_table(0, variable("a", {64, kWideDim}), {}),
                      whole_table(1, variable("b", {64, kWideDim}), {})},
                     options()};
  std::uint64_t closure_ = 0;
};

TEST_F(SaveMemoryTest, APushThatWouldCopyMoreThanTheBoundWaitsUntilItsBlockIsTaken) {
  begin_save();
  EXPECT_FALSE(push(rows(0, kRowsOfTheBound), 2)->waits());
  const auto later = push(rows(30, 4), 2);  // of the second block and the third
  EXPECT_TRUE(later->waits());
  EXPECT_LE(shard.shard.counters().save.copied_bytes.load(), CopyPool::kSlabBytes);
  EXPECT_THAT(firsts(rows(30, 4)), Each(1));
  EXPECT_EQ(shard.shard.counters().kept.waiting.load(), 1u);

  EXPECT_THAT(take(1), Each(1));  // its copies have gone

  EXPECT_FALSE(later->waits());
  EXPECT_THAT(firsts(rows(30, 4)), Each(2));
  EXPECT_EQ(shard.shard.counters().kept.waiting.load(), 0u);
  EXPECT_THAT(take(7), Each(1));
}

TEST_F(SaveMemoryTest, NothingElseWaitsAtTheBound) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const auto waits = push({40}, 2);
  ASSERT_TRUE(waits->waits());

  EXPECT_THAT(firsts({40}), Each(1));          // a pull, also of its rows
  EXPECT_FALSE(push(rows(0, 9), 3)->waits());  // rows that are aside already
  EXPECT_THAT(firsts(rows(0, 9)), Each(3));
}

TEST_F(SaveMemoryTest, RowsThatTheWriterHasAreNoCopies) {
  begin_save();
  take(3);
  EXPECT_FALSE(push(rows(0, 48), 2)->waits());
  EXPECT_EQ(shard.shard.counters().save.copied_bytes.load(), 0u);
}

TEST_F(SaveMemoryTest, PushesOfOneRowApplyInTheOrderInWhichTheyCame) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const auto first = push({40, 41}, 3);
  const auto second = push({0, 40}, 4);  // row 0 is aside, but row 40 is the first one's
  EXPECT_TRUE(first->waits());
  EXPECT_TRUE(second->waits());
  take(4);
  EXPECT_FALSE(first->waits());
  EXPECT_FALSE(second->waits());
  EXPECT_THAT(firsts({0, 40, 41}), testing::ElementsAre(4, 4, 3));
}

TEST_F(SaveMemoryTest, AWaitEndsWithTheSaveHoweverThatEnds) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const auto dropped = push({40}, 2);
  EXPECT_TRUE(dropped->waits());
  shard.shard.drop_mark(kCut);
  EXPECT_FALSE(dropped->waits());
  EXPECT_THAT(firsts({40}), Each(2));

  shard.shard.mark(kCut + 1);
  push(rows(0, kRowsOfTheBound), 3);
  const auto lost = push({40}, 3);
  EXPECT_TRUE(lost->waits());
  shard.shard.change_hands();  // another connection of the coordinator's
  EXPECT_FALSE(lost->waits());
  EXPECT_THAT(firsts({40}), Each(3));
}

TEST_F(SaveMemoryTest, AfterASecondMarkAPushThatWaitedIsNoPartOfIt) {
  shard.shard.mark(kCut - 1);
  push(rows(0, kRowsOfTheBound), 2);
  const auto later = push({40}, 3);
  EXPECT_TRUE(later->waits());
  begin_save();
  EXPECT_FALSE(later->waits());
  EXPECT_THAT(firsts({40}), Each(3));
  const Floats saved = take(4);
  EXPECT_THAT(std::span(saved).first(kRowsOfTheBound), Each(2));
  EXPECT_THAT(std::span(saved).subspan(kRowsOfTheBound), Each(1));
}

TEST_F(SaveMemoryTest, AnUpdateOfEveryRowWaitsUntilTheRestOfTheTableFits) {
  begin_save();
  const auto later =
      watched(shard.push_whole(shard.step(++closure_), 0, Floats(64 * kWideDim, 2), kSet));
  EXPECT_TRUE(later->waits());
  take(3);
  EXPECT_TRUE(later->waits());  // sixteen rows are left, and fifteen fit
  take(1);
  EXPECT_FALSE(later->waits());
  EXPECT_THAT(firsts(rows(0, 64)), Each(2));
  EXPECT_THAT(take(4), Each(1));  // of the other table
}

TEST_F(SaveMemoryTest, APushOfAFencedWorkerStopsWaiting) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const auto fenced = push(shard.step(++closure_, 0, 2), {40}, 2);
  const LaneIncarnation alive = 1;
  shard.shard.fence(ShardHarness::kSession, 2, {&alive, 1});
  EXPECT_EQ(fenced->code(), Code::kCancelled);
  shard.shard.drop_mark(kCut);
  EXPECT_THAT(firsts({40}), Each(1));
}

TEST_F(SaveMemoryTest, APushThatIsGivenUpLetsThoseBehindItGo) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const PushResult given_up =
      shard.push(shard.step(++closure_), 0, {3, 40}, Floats(2 * kWideDim, 3), kSet);
  ASSERT_NE(given_up.waits, 0u);
  const auto behind = push({3}, 4);
  EXPECT_TRUE(behind->waits());
  shard.shard.give_up(given_up.waits);
  EXPECT_FALSE(behind->waits());
  EXPECT_THAT(firsts({3, 40}), testing::ElementsAre(4, 1));
}

TEST_F(SaveMemoryTest, SaysWhatIsWaitedFor) {
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  push({40}, 2);
  EXPECT_THAT(shard.shard.waits_for(),
              testing::AllOf(HasSubstr("65536 of 65536 bytes"), HasSubstr("cut 5"),
                             HasSubstr("0 of its 8 blocks")));
}

TEST_F(SaveMemoryTest, ARoundWaitsAndIsAppliedOnce) {
  auto share = [&](std::uint64_t closure, float value) {
    StepContext step = shard.step(closure);
    step.round = 1;
    shard.push(step, 0, rows(40, 2), Floats(2 * kWideDim, value), sgd());
  };
  share(101, -1);
  share(102, -2);
  begin_save();
  push(rows(0, kRowsOfTheBound), 2);
  const RoundMember members[] = {{101, 1}, {102, 1}};
  const RoundRequest round{ShardHarness::kSession, 1, members};
  const auto waits = watched(shard.shard.apply_round(round));
  const auto again = watched(shard.shard.apply_round(round));  // after a lost connection, say
  EXPECT_TRUE(waits->waits());
  EXPECT_TRUE(again->waits());
  EXPECT_THAT(firsts({40}), Each(1));
  const std::uint64_t counter = shard.shard.version().counter;

  take(4);

  ASSERT_FALSE(waits->waits());
  ASSERT_FALSE(again->waits());
  EXPECT_FALSE(waits->pushed->duplicate);
  EXPECT_TRUE(again->pushed->duplicate);
  EXPECT_EQ(shard.shard.version().counter, counter + 1);
  EXPECT_THAT(firsts({40, 41}), Each(4));
}

TEST(SaveMemory, IsAShareOfTheRowsAndNoLessThanAFloor) {
  const auto limit_with = [](std::int64_t rows) {
    ShardOptions options{.lineage = 100};
    options.save_memory.share = 0.75;
    ShardHarness shard({whole_table(0, variable("a", {rows, kWideDim}), sgd())}, options);
    shard.shard.mark(1);
    return shard.shard.counters().save.copied_bytes_max.load();
  };
  EXPECT_EQ(limit_with(1), SaveMemory::kBytesMin);
  EXPECT_EQ(limit_with(8192), std::size_t{24} << 20);
}

// The rule moves every row, the moments of those without a gradient too.
TEST(SaveMemory, AdamWaitsAsAWholeAndGoesOnAfterwards) {
  ShardOptions options{.lineage = 100};
  options.save_memory.bytes = CopyPool::kSlabBytes;
  ShardHarness shard({whole_table(0, variable("a", {64, kWideDim}), adam())}, options);
  shard.push_whole(shard.step(1), 0, Floats(64 * kWideDim, 1), adam());
  const Floats before = shard.pull_whole(0);
  shard.shard.mark(1);
  const PushResult pushed = shard.push(shard.step(2), 0, {7}, Floats(kWideDim, 1), adam());
  ASSERT_NE(pushed.waits, 0u);
  bool ended = false;
  shard.shard.on_end(pushed.waits,
                     [&](const WaitOutcome& outcome) { ended = outcome.error == nullptr; });
  const auto records = shard.frozen(1);
  shard.shard.drop_mark(1);
  EXPECT_TRUE(ended);
  EXPECT_NE(shard.pull_whole(0), before);
  ShardHarness restored({whole_table(0, variable("a", {64, kWideDim}), adam())});
  restore(restored.shard, records);
  EXPECT_EQ(restored.pull_whole(0), before);
  EXPECT_EQ(shard.push(shard.step(3), 0, {7}, Floats(kWideDim, 1), adam()).waits, 0u);
}

}  // namespace
}  // namespace cairn::ps
