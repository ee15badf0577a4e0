#include "core/rows/tiny_lfu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/rows/frequency_sketch.h"
#include "testing/zipf_ids.h"

namespace cairn {
namespace {

// Ids over the slots of a TinyLfu, one of which is only for a row that comes before another leaves.
class CachedIds {
 public:
  explicit CachedIds(std::uint32_t rows, double window_share = 0.01)
      : cache_(rows, window_share), ids_(rows + 1) {
    for (std::uint32_t slot = rows + 1; slot-- > 0;) free_.push_back(slot);
  }
  // Whether the id was there; it is afterwards, unless it was the one to leave.
  bool ask(std::uint64_t id, const TinyLfu::MayLeave& may_leave = {}) {
    const std::uint64_t hash = mix_bits(id + 1);
    if (const auto at = slots_.find(id); at != slots_.end()) {
      cache_.use(at->second, hash);
      return true;
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    cache_.enter(slot, hash);
    ids_[slot] = id;
    slots_[id] = slot;
    if (free_.empty())
      if (const auto leaves = cache_.choose(may_leave)) remove(ids_[*leaves]);
    EXPECT_EQ(slots_.size(), cache_.used());
    return false;
  }
  bool holds(std::uint64_t id) const { return slots_.count(id) > 0; }
  void remove(std::uint64_t id) {
    cache_.remove(slots_.at(id));
    free_.push_back(slots_.at(id));
    slots_.erase(id);
  }
  std::uint32_t slot(std::uint64_t id) const { return slots_.at(id); }
  std::size_t size() const { return slots_.size(); }
  TinyLfu& cache() { return cache_; }

 private:
  TinyLfu cache_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
};

double hit_rate(double window_share, const std::vector<std::uint64_t>& trace, std::uint32_t slots) {
  CachedIds cache(slots, window_share);
  std::size_t hits = 0;
  for (const std::uint64_t id : trace) hits += cache.ask(id) ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

TEST(FrequencySketch, CountsWhatWasAskedForOftenAboveWhatWasNot) {
  FrequencySketch sketch(1000);
  for (std::uint64_t id = 0; id < 1000; ++id)
    for (std::uint64_t use = 0; use <= id / 250; ++use) sketch.add(mix_bits(id + 1));
  int right = 0;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const std::uint32_t count = sketch.count(mix_bits(id + 1));
    EXPECT_GE(count, id / 250 + 1);  // it never says less
    right += count == id / 250 + 1 ? 1 : 0;
  }
  EXPECT_GE(right, 900);
  EXPECT_EQ(FrequencySketch(1000).count(mix_bits(7)), 0u);
}

TEST(FrequencySketch, ForgetsAsOthersAreUsed) {
  FrequencySketch sketch(100);
  for (int use = 0; use < 12; ++use) sketch.add(mix_bits(1));
  EXPECT_EQ(sketch.count(mix_bits(1)), 12u);
  for (std::uint64_t id = 2; id < 5000; ++id) sketch.add(mix_bits(id));
  EXPECT_LE(sketch.count(mix_bits(1)), 3u);
}

// The order is that in which rows came, but those that were used meanwhile come last.
TEST(TinyLfu, AllOfItIsAQueueWithASecondChanceIfTheWindowIs) {
  constexpr std::size_t kSlots = 20;
  CachedIds cache(kSlots, 1);
  std::list<std::pair<std::uint64_t, bool>> queue;  // ids, and whether they were used
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t id = random.below(40);
    const auto at = std::find_if(queue.begin(), queue.end(),
                                 [&](const auto& entry) { return entry.first == id; });
    EXPECT_EQ(cache.ask(id), at != queue.end());
    if (at != queue.end()) {
      at->second = true;
      continue;
    }
    queue.emplace_front(id, false);
    if (queue.size() <= kSlots) continue;
    while (queue.back().second) {
      queue.emplace_front(queue.back().first, false);
      queue.pop_back();
    }
    queue.pop_back();
  }
  EXPECT_EQ(cache.size(), kSlots);
}

TEST(TinyLfu, RowsThatComeBackStayThroughAScan) {
  CachedIds cache(100), lru(100, 1);
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t id = 0; id < 80; ++id) {
      cache.ask(id);
      lru.ask(id);
    }
  }
  for (std::uint64_t id = 1000; id < 1500; ++id) {
    cache.ask(id);
    lru.ask(id);
  }
  int kept = 0, kept_by_lru = 0;
  for (std::uint64_t id = 0; id < 80; ++id) {
    kept += cache.holds(id) ? 1 : 0;
    kept_by_lru += lru.holds(id) ? 1 : 0;
  }
  EXPECT_GE(kept, 76);
  EXPECT_EQ(kept_by_lru, 0);
}

TEST(TinyLfu, RowsThatMayNotLeaveStay) {
  CachedIds cache(10, 0.3);
  std::set<std::uint32_t> needed;
  for (std::uint64_t id = 0; id < 10; ++id) {
    cache.ask(id);
    if (id % 2 == 0) needed.insert(cache.slot(id));
  }
  const auto may_leave = [&](TinyLfu::Slot slot) { return needed.count(slot) == 0; };
  for (std::uint64_t id = 100; id < 300; ++id) cache.ask(id, may_leave);
  for (std::uint64_t id = 0; id < 10; id += 2) EXPECT_TRUE(cache.holds(id)) << id;
  EXPECT_EQ(cache.size(), 10u);
  EXPECT_EQ(cache.cache().choose([](TinyLfu::Slot) { return false; }), std::nullopt);
}

TEST(TinyLfu, ASlotIsOfOneRowAtATime) {
  TinyLfu cache(3);
  EXPECT_EQ(cache.choose(), std::nullopt);
  EXPECT_THROW(cache.use(1, 5), InternalError);
  EXPECT_THROW(cache.remove(1), InternalError);
  cache.enter(1, 5);
  EXPECT_THROW(cache.enter(1, 6), InternalError);
  EXPECT_EQ(cache.choose(), 1u);
  cache.remove(1);
  EXPECT_EQ(cache.used(), 0u);
  cache.enter(1, 6);
  cache.use(1, 6);
}

TEST(TinyLfu, MoreRowsThanItIsForMayBeInItUntilTheyLeave) {
  TinyLfu cache(10);
  for (std::uint32_t slot = 0; slot < 40; ++slot) cache.enter(slot, mix_bits(slot + 1));
  EXPECT_EQ(cache.used(), 40u);
  for (std::uint32_t slot = 0; slot < 10; ++slot)
    for (int use = 0; use < 3; ++use) cache.use(slot, mix_bits(slot + 1));
  while (cache.used() > 10) cache.remove(*cache.choose());
  for (std::uint32_t slot = 0; slot < 10; ++slot) EXPECT_NO_THROW(cache.use(slot, slot)) << slot;
}

TEST(TinyLfu, HitsMoreOfAPowerLawThanAnLru) {
  testing::ZipfIds ids(50'000, 1.05, 1);
  std::vector<std::uint64_t> trace;
  for (int i = 0; i < 200'000; ++i) trace.push_back(ids.next());
  EXPECT_GT(hit_rate(0.01, trace, 2'000), hit_rate(1, trace, 2'000) + 0.03);
}

}  // namespace
}  // namespace cairn
