#include "core/kernels/cuda/rows/row_cache_work.h"

#include <vector>

#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

// Missing rows that one warp has on their way at once, and blocks of such warps. With rows of 512
// bytes these are 16 KB per block and 1 MB in all, where 50 GB/s at a latency of 2 us need 100 KB.
// Blocks live as long as the bus is busy, so they take a small part of the device.
constexpr int kFlight = 4;
constexpr std::int64_t kCopyBlocks = 64;

constexpr std::int64_t kChunk = 512;  // missing rows that a warp enters together

// Batches after which a row is as cheap as it can be.
constexpr std::int64_t kOldest = 65'000;

CAIRN_DEVICE void add(std::uint64_t* sum, std::int64_t more) {
#ifdef __CUDACC__
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(more));
#else
  *sum += static_cast<std::uint64_t>(more);
#endif
}

CAIRN_DEVICE std::uint64_t dearness(const CacheEntry& entry, std::int64_t batch) {
  constexpr std::int64_t kHighest = static_cast<std::int64_t>(kInFlight) - 1;
  const std::int64_t worth = kOldest + entry.last_used + kUseWorth * (entry.uses - 1) - batch;
  return static_cast<std::uint64_t>(worth < 0 ? 0 : worth < kHighest ? worth : kHighest);
}

// Announces the places that change, when the kernels run, to a driver that watches.
#ifdef __CUDACC__
void announce_moves(Queue&, const CacheView&) {}
#else
void announce_moves(Queue& queue, const CacheView& view) {
  Driver& driver = queue.driver();
  if (!driver.watches()) return;
  driver.run_on_host([&driver, view, on = queue.stream()] {
    const std::size_t bytes = static_cast<std::size_t>(view.words) * sizeof(CacheWord);
    std::vector<Range> reads, writes;
    for (std::int64_t m = 0; m < view.missing_count() && view.has_victim(m); ++m) {
      const std::int32_t place = view.victims.places[m];
      const CacheWord* const begin = view.cached + place * view.words;
      writes.push_back({reinterpret_cast<const std::byte*>(begin), bytes});
      if (view.entries[place].row != CacheEntry::kEmpty) reads.push_back(writes.back());
    }
    driver.announce(on, reads, writes);
  });
}
#endif

// Copies the rows of kFlight victims out, and those of as many missing rows in.
struct CopyRows {
  CacheView v;

  CAIRN_KERNEL_BODY void operator()(const Group& group, std::int64_t i) const {
    const std::int64_t first = i * kFlight, count = v.missing_count();
    if (first >= count) return;
    // Null: nothing comes in, or nothing goes out.
    CacheWord *place[kFlight] = {}, *in[kFlight] = {}, *out[kFlight] = {};
    CAIRN_UNROLL
    for (int k = 0; k < kFlight; ++k) {
      if (first + k >= count || !v.has_victim(first + k)) continue;
      const std::int32_t to = v.victims.places[first + k];
      const CacheEntry old = v.entries[to];
      place[k] = v.cached + to * v.words;
      in[k] = v.home + v.batch.requests[v.batch.missing[first + k]] * v.words;
      if (old.row != CacheEntry::kEmpty && old.changed != 0) out[k] = v.home + old.row * v.words;
    }
    for (std::int64_t at = group.rank(); at < v.words; at += group.size()) {
      CacheWord coming[kFlight], going[kFlight];
      CAIRN_UNROLL
      for (int k = 0; k < kFlight; ++k) {
        if (in[k] != nullptr) coming[k] = in[k][at];
        if (out[k] != nullptr) going[k] = place[k][at];
      }
      CAIRN_UNROLL
      for (int k = 0; k < kFlight; ++k) {
        if (out[k] != nullptr) out[k][at] = going[k];
        if (in[k] != nullptr) place[k][at] = coming[k];
      }
    }
  }
};

// Enters kChunk of the rows that have come in.
struct EnterRows {
  CacheView v;
  std::int32_t batch;
  std::int16_t changed;
  FaultSite no_room;

  CAIRN_KERNEL_BODY void operator()(const Group& group, std::int64_t i) const {
    const std::int64_t count = v.missing_count();
    const std::int64_t end = (i + 1) * kChunk < count ? (i + 1) * kChunk : count;
    std::int32_t written = 0;
    for (std::int64_t m = i * kChunk + group.rank(); m < end; m += group.size())
      written += enter(m, count);
    written = group.combine(written, [](std::int32_t a, std::int32_t b) { return a + b; });
    if (group.rank() != 0) return;
    if (written > 0) add(&v.sums->written, written);
    if (i != 0) return;
    v.sums->read += static_cast<std::uint64_t>(count);
    v.sums->found += static_cast<std::uint64_t>(v.batch.ordinals[v.lookups - 1] - count);
  }

 private:
  // Returns how many rows have gone home for it.
  CAIRN_DEVICE std::int32_t enter(std::int64_t m, std::int64_t count) const {
    if (!v.has_victim(m)) {
      if (m == 0 || v.has_victim(m - 1)) no_room.report(m, count - m);
      return 0;
    }
    const std::int32_t place = v.victims.places[m], request = v.batch.missing[m];
    const std::int64_t row = v.batch.requests[request];
    const CacheEntry old = v.entries[place];
    if (old.row != CacheEntry::kEmpty) v.place_of[old.row] = -1;
    v.entries[place] = {row, batch, 1, changed};
    v.place_of[row] = place;
    v.batch.found[request] = place;
    return old.row != CacheEntry::kEmpty ? old.changed : 0;
  }
};

// numbers[i] = the row of lookup i over all tables, or -1.
template <typename Id>
void number_rows(Queue& queue, const CacheView& v, const Lookups& lookups,
                 const FaultSite& bad_id) {
  const Id* const ids = static_cast<const Id*>(lookups.ids);
  const std::int64_t* const first_lookup = lookups.first_lookup;
  const std::int64_t count = lookups.count;
  for_each(queue, v.lookups, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    v.batch.numbers[i] = -1;
    if (i >= count) return;
    std::int64_t table = 0;
    while (first_lookup[table + 1] <= i) ++table;
    const std::int64_t id = ids[i], begin = v.first_row[table];
    if (id >= 0 && id < v.first_row[table + 1] - begin)
      v.batch.numbers[i] = begin + id;
    else if (bad_id.record != nullptr)
      bad_id.report(i, id);
  });
}

}  // namespace

void clear_cache(Queue& queue, const CacheView& v) {
  for_each(queue, v.places, [v] CAIRN_KERNEL_BODY(std::int64_t i) {
    v.entries[i] = {CacheEntry::kEmpty, 0, 0, 0};
  });
  for_each(queue, v.rows, [v] CAIRN_KERNEL_BODY(std::int64_t i) { v.place_of[i] = -1; });
  queue.driver().fill_zero(queue.stream(), reinterpret_cast<std::byte*>(v.sums), sizeof *v.sums);
}

void find_requests(Queue& queue, const CacheView& v, OrderedIds& order, const Lookups& lookups,
                   std::int32_t batch, bool changes, const FaultSite& bad_id) {
  Driver& driver = queue.driver();
  if (lookups.type == IdType::kInt32)
    number_rows<std::int32_t>(queue, v, lookups, bad_id);
  else
    number_rows<std::int64_t>(queue, v, lookups, bad_id);
  order.sort(v.batch.numbers, OrderedIds::Negative::kDropped, FaultSite{});
  const auto none = static_cast<std::uint64_t>(v.rows);
  for_each(queue, v.lookups, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    v.batch.flags[i] = v.ids[i] != none && (i == 0 || v.ids[i] != v.ids[i - 1]);
  });
  driver.running_sums(queue.stream(), v.lookups, v.batch.flags, v.batch.ordinals, v.sum_scratch);
  driver.fill_zero(queue.stream(), reinterpret_cast<std::byte*>(v.batch.flags),
                   static_cast<std::size_t>(v.lookups) * sizeof(std::int32_t));
  for_each(queue, v.lookups, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int32_t ordinal = v.batch.ordinals[i];
    if (ordinal == (i > 0 ? v.batch.ordinals[i - 1] : 0)) return;  // begins no request
    const std::int32_t request = ordinal - 1;
    const auto row = static_cast<std::int64_t>(v.ids[i]);
    const std::int32_t place = v.place_of[row];
    v.batch.requests[request] = row;
    v.batch.found[request] = place;
    v.batch.flags[request] = place < 0;
    if (place < 0) return;
    CacheEntry entry = v.entries[place];
    entry.last_used = batch;
    if (entry.uses < kUsesMax) ++entry.uses;
    if (changes) entry.changed = 1;
    v.entries[place] = entry;
  });
  driver.running_sums(queue.stream(), v.lookups, v.batch.flags, v.batch.ranks, v.sum_scratch);
  for_each(queue, v.lookups, [v] CAIRN_KERNEL_BODY(std::int64_t i) {
    if (v.batch.flags[i] != 0) v.batch.missing[v.batch.ranks[i] - 1] = static_cast<std::int32_t>(i);
  });
}

void choose_victims(Queue& queue, const CacheView& v, std::int32_t batch) {
  const std::int64_t released = batch - v.batches, begin = batch * v.window % v.places;
  for_each(queue, v.window, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t place = begin + i < v.places ? begin + i : begin + i - v.places;
    const CacheEntry entry = v.entries[place];
    v.victims.candidates[i] = static_cast<std::int32_t>(place);
    v.victims.candidates_dear[i] = entry.row == CacheEntry::kEmpty ? 0
                                   : entry.last_used > released    ? kInFlight
                                                                   : dearness(entry, batch);
  });
  queue.driver().sort(queue.stream(), v.window, kDearBits, v.victims.candidates_dear,
                      v.victims.dear, v.victims.candidates, v.victims.places, v.sort_scratch);
}

// In two kernels, so that all lanes of a warp see who was in a place before another enters.
void exchange_rows(Queue& queue, const CacheView& view, std::int32_t batch, bool changes,
                   const FaultSite& no_room) {
  announce_moves(queue, view);
  for_each_warp(queue, (view.lookups + kFlight - 1) / kFlight, kCopyBlocks, CopyRows{view});
  for_each_group(queue, (view.lookups + kChunk - 1) / kChunk, kChunk,
                 EnterRows{view, batch, static_cast<std::int16_t>(changes), no_room});
}

void write_places(Queue& queue, const CacheView& v, std::int32_t* places) {
  const auto none = static_cast<std::uint64_t>(v.rows);
  for_each(queue, v.lookups, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    places[v.positions[i]] = v.ids[i] == none ? -1 : v.batch.found[v.batch.ordinals[i] - 1];
  });
}

void copy_home(Queue& queue, const CacheView& v, std::int32_t first_in_flight) {
  for_each_warp(queue, v.places, kCopyBlocks * 4,
                [v] CAIRN_KERNEL_BODY(const Group& group, std::int64_t i) {
                  const CacheEntry entry = v.entries[i];
                  if (entry.row == CacheEntry::kEmpty || entry.changed == 0) return;
                  for (std::int64_t at = group.rank(); at < v.words; at += group.size())
                    v.home[entry.row * v.words + at] = v.cached[i * v.words + at];
                });
  for_each(queue, v.places, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    if (v.entries[i].last_used < first_in_flight) v.entries[i].changed = 0;
  });
}

}  // namespace cairn::cuda
