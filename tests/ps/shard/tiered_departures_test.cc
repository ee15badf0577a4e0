// Rows of a shard that leave memory for the disk, or for good: what deltas hold of them, and which
// of them go.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "ps/snapshot/departures.h"
#include "tests/ps/shard/tiered_shard.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kWidth = 2;

// The rows that a save wrote.
struct Saved {
  std::set<std::int64_t> rows;
  std::vector<std::int64_t> gone;
};

// 64 rows at most are in memory.
class Departing {
 public:
  explicit Departing(const RowPolicy& policy = {})
      : tiered_({whole_table(0, hashed_variable("rows", kWidth, policy), sgd())}) {}
  Shard& shard() { return tiered_.harness.shard; }

  // One update of each of these.
  void push(const Ids& ids, float value = 1) {
    tiered_.harness.push(tiered_.harness.step(++closure_), 0, ids,
                         Floats(ids.size() * kWidth, value));
    settle();
  }
  void evict(const Ids& ids) {
    tiered_.harness.push(tiered_.harness.step(++closure_), 0, ids, Floats(ids.size() * kWidth),
                         eviction_rule());
    settle();
  }
  void push_each(std::int64_t first, std::int64_t end) {
    for (std::int64_t id = first; id < end; ++id) push({id});
  }
  Floats pull(const Ids& ids) {
    const ReadHeader header{0, 0, static_cast<std::uint32_t>(ids.size()), false};
    const PullRequest request{tiered_.harness.step(0), {&header, 1}, ids};
    if (!shard().must_wait(request)) return tiered_.harness.pull_request(request);
    Floats pulled;
    const std::uint64_t wait = shard().wait(request);
    shard().on_end(wait,
                   [&](const WaitOutcome&) { pulled = tiered_.harness.pull_request(request); });
    settle();
    shard().answered(wait);
    return pulled;
  }
  Saved save(std::uint64_t attempt, const MarkOptions& options) {
    shard().mark(attempt, options);
    shard().begin_save(attempt);
    while (shard().next_frozen(attempt)) {
    }
    Saved saved;
    while (const auto rows = shard().next_unordered(attempt)) {
      for (const std::uint64_t offset : rows->rows.offsets)
        saved.rows.insert(rows->rows.first_row + static_cast<std::int64_t>(offset));
      saved.gone.insert(saved.gone.end(), rows->gone.begin(), rows->gone.end());
    }
    const auto take = [&saved](const RowsElsewhere& rows) {
      for (const std::uint64_t key : rows.read.keys)
        EXPECT_TRUE(saved.rows.insert(static_cast<std::int64_t>(key)).second) << key << " twice";
    };
    while (shard().next_elsewhere(attempt, 100, take)) settle();
    shard().drop_mark(attempt);
    return saved;
  }
  std::uint64_t rows() { return shard().counters().rows.load() + tiered_.rows_elsewhere(); }
  std::uint64_t rows_elsewhere() const { return tiered_.rows_elsewhere(); }
  std::uint64_t gone() { return shard().counters().turnover.gone.load(); }

 private:
  void settle() {
    do {
      tiered_.later.do_all();
      shard().store_went_on();
    } while (!tiered_.later.work.empty());
  }

  TieredShard tiered_;
  std::uint64_t closure_ = 0;
};

TEST(TieredDelta, HoldsTheRowsThatChangedWhereverTheyAre) {
  Departing shard;
  shard.push_each(0, 500);
  EXPECT_EQ(shard.save(1, {.track = true}).rows.size(), 500u);
  shard.push({3, 77, 450});
  shard.pull({10, 20, 30});  // come, and have not changed
  shard.push_each(500, 600);
  ASSERT_GT(shard.rows_elsewhere(), 500u);
  shard.pull({77});  // has left, and is back
  std::set<std::int64_t> changed{3, 77, 450};
  for (std::int64_t id = 500; id < 600; ++id) changed.insert(id);
  EXPECT_EQ(shard.save(2, {.base = 1, .track = true}).rows, changed);
  EXPECT_THAT(shard.save(3, {.base = 2, .track = true}).rows, IsEmpty());
}

TEST(TieredDelta, HasWhatAnEarlierOneHeldThatCameToNothing) {
  Departing shard;
  shard.push_each(0, 300);
  shard.save(1, {.track = true});
  shard.push_each(0, 5);
  shard.save(2, {.base = 1, .track = true});
  shard.push_each(290, 300);
  for (std::int64_t id = 100; id < 200; ++id) shard.pull({id});  // the others leave
  EXPECT_THAT(shard.save(3, {.base = 1, .track = true}).rows,
              ElementsAre(0, 1, 2, 3, 4, 290, 291, 292, 293, 294, 295, 296, 297, 298, 299));
}

TEST(TieredDelta, SaysWhichRowsWentForGoodAndHoldsThoseThatCameAgain) {
  Departing shard({.steps_to_live = 400});
  shard.push_each(0, 300);
  shard.save(1, {.track = true});
  shard.push_each(1000, 2200);
  shard.push({7});
  shard.push_each(3000, 3100);  // so that it leaves
  const Saved delta = shard.save(2, {.base = 1, .track = true});
  EXPECT_TRUE(delta.rows.contains(7));
  for (std::int64_t id = 0; id < 300; ++id)
    EXPECT_NE(delta.rows.contains(id), std::ranges::binary_search(delta.gone, id)) << id;
}

TEST(RowsOnADisk, AreOfAllRowsThatRowsMaxBounds) {
  Departing shard({.rows_max = 400});
  shard.push_each(0, 3000);
  EXPECT_GT(shard.rows_elsewhere(), 200u);
  EXPECT_LT(shard.rows(), 420u);
  EXPECT_EQ(shard.rows() + shard.gone(), 3000u);
}

TEST(RowsOnADisk, GoWhenTheyWereNotUpdatedForLongHoweverOftenTheyWereRead) {
  Departing shard({.steps_to_live = 500});
  const Floats initial = shard.pull({5, 6});
  shard.push({5, 6});
  EXPECT_NE(shard.pull({5, 6}), initial);
  for (std::int64_t id = 0; id < 1500; ++id) {
    shard.push({1000 + id});
    if (id % 100 == 50) shard.pull({5});
  }
  EXPECT_EQ(shard.pull({5, 6}), initial);
  EXPECT_GT(shard.gone(), 300u);
}

TEST(RowsOnADisk, GoWhenTheyAreEvictedByName) {
  Departing shard({.evictable = true});
  const Floats initial = shard.pull({5, 290});
  shard.push_each(0, 300);
  shard.save(1, {.track = true});
  shard.evict({5, 290, 777});
  EXPECT_EQ(shard.pull({5, 290}), initial);
  EXPECT_EQ(shard.gone(), 2u);
  const Saved delta = shard.save(2, {.base = 1, .track = true});
  EXPECT_THAT(delta.rows, IsEmpty());
  EXPECT_THAT(delta.gone, ElementsAre(5, 290));
}

TEST(RowsOnADisk, StayIfTheirNormIsSpared) {
  Departing shard({.steps_to_live = 100, .spared_norm = 50});
  shard.push({5}, 90);
  const Floats value = shard.pull({5});
  shard.push_each(1000, 1600);
  EXPECT_EQ(shard.pull({5}), value);
  EXPECT_GT(shard.gone(), 300u);
}

using To = Departures::To;
using Rows = Snapshot::Rows;
using Tracking = Snapshot::Tracking;

TEST(Departures, KnowWhatBecameOfARowLast) {
  Departures left;
  left.freeze(false, Rows::kAll, Tracking::kAnew);
  left.add(Ids{4, 9, 2}, To::kDisk);
  left.add(Ids{9, 7}, To::kNowhere);
  left.add(Ids{7}, To::kDisk);
  left.freeze(true, Rows::kChanged, Tracking::kAnew);
  EXPECT_THAT(left.gone(), ElementsAre(9));
  EXPECT_THAT(left.on_disk(), ElementsAre(2, 4, 7));
}

TEST(Departures, BeyondTheirBoundAreNotKnownUntilTheNextFreeze) {
  Departures left(4);
  left.freeze(false, Rows::kAll, Tracking::kAnew);
  for (int i = 0; i < 10; ++i) left.add(Ids{1, 2}, To::kDisk);  // the same ones
  EXPECT_FALSE(left.lost(Rows::kChanged));
  left.add(Ids{3, 4, 5}, To::kDisk);
  EXPECT_TRUE(left.lost(Rows::kChanged));
  left.freeze(false, Rows::kChanged, Tracking::kAnew);
  EXPECT_FALSE(left.lost(Rows::kChanged));
  left.add(Ids{6}, To::kDisk);
  left.freeze(true, Rows::kChanged, Tracking::kAnew);
  EXPECT_THAT(left.on_disk(), ElementsAre(6));
}

TEST(Departures, OfADeltaThatCameToNothingAreInTheNextOne) {
  Departures left;
  left.freeze(false, Rows::kAll, Tracking::kAnew);
  left.add(Ids{1}, To::kNowhere);
  left.freeze(true, Rows::kChanged, Tracking::kAnew);
  left.add_of_last_delta(Ids{8});
  left.add(Ids{2}, To::kNowhere);
  left.freeze(true, Rows::kChangedBefore, Tracking::kAnew);
  EXPECT_THAT(left.gone(), ElementsAre(1, 2));
  EXPECT_THAT(left.on_disk(), ElementsAre(8));
}

}  // namespace
}  // namespace cairn::ps
