// The kernels of RowCache (row_cache.h), by the steps in which a batch is prepared:
//
//   1. Its lookups are sorted by row, so that each row is one *request*. A request finds its row's
//      place in `place_of`, an array with an entry for every row of the tables; the place is marked
//      as used by the batch. Requests without a place are numbered by running sums.
//   2. Victims: a window of places is sorted by how dear their rows are. The n-th of them goes to
//      the n-th request without a place. The window moves on from batch to batch. It is so wide
//      that the batches in flight and kSpareBatches more cannot fill it: there is always a victim,
//      and a choice, and the work of a batch does not grow with the cache.
//   3. Warps copy the victims' rows out, if they were changed, and the missing rows in.
//   4. Every lookup gets its place.
//
// In flight are the batches that are prepared and not released. Batch b is prepared behind the
// release of batch b - (lookahead + 1), so "last used after that one" is the same as "in flight":
// places need no counts of who uses them. And because those releases are waited for, whatever
// changed a victim has ended.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/runtime/ordered_ids.h"
#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {

struct alignas(16) CacheWord {
  std::uint64_t half[2];
};

// The state of a place.
struct alignas(16) CacheEntry {
  static constexpr std::int64_t kEmpty = -1;
  std::int64_t row;
  std::int32_t last_used;  // by which batch
  std::int16_t uses;       // batches that looked it up since it came in, up to kUsesMax
  std::int16_t changed;
};

// How dear a row is as a victim; the lowest goes first. A row that k batches have looked up counts
// as if it had been looked up kUseWorth * (k - 1) batches later than it was. In a simulation of the
// job of bench/gpu, a power law with a tenth of the rows in the cache, 14 % fewer rows come in than
// with the least recently used rows as victims, and 3 % more than with the least frequently used
// ones, which would not follow a change of habits.
inline constexpr int kUseWorth = 8, kUsesMax = 8;
inline constexpr int kSpareBatches = 3;
inline constexpr int kDearBits = 16;
inline constexpr std::uint64_t kInFlight = (1u << kDearBits) - 1;

// Adds up over all batches.
struct CacheSums {
  std::uint64_t found, read, written;
};

// Arrays for the batch that is being prepared, each of shape [lookups].
struct CacheBatch {
  std::int64_t* numbers;   // by lookup, the row over all tables; -1: none
  std::int32_t* flags;     // which lookups in order begin a request; then, which requests miss
  std::int32_t* ordinals;  // by lookup in order, how many requests begin up to here
  std::int64_t* requests;  // their rows
  std::int32_t* found;     // by request, its place, or -1
  std::int32_t* ranks;     // by request, how many up to this one miss
  std::int32_t* missing;   // which requests miss
};

// [window]: places as they lie, and as victims in ascending order of `dear`.
struct CacheVictims {
  std::uint64_t *candidates_dear, *dear;
  std::int32_t *candidates, *places;
};

// The memory that the kernels read and write: the device's, but for `home`.
struct CacheView {
  std::int64_t places, rows, words;       // of the cache, of the tables, of a row
  std::int64_t lookups, window, batches;  // of a batch; of places; in flight at most
  CacheWord *home, *cached;               // [rows, words], [places, words]
  CacheEntry* entries;                    // [places]
  std::int32_t* place_of;                 // [rows]; -1: in no place
  std::int64_t* first_row;                // [tables + 1]
  CacheSums* sums;
  CacheBatch batch;
  CacheVictims victims;
  // Lookups in the order of their rows, from OrderedIds: `rows` for lookups of none.
  const std::uint64_t* ids;
  const std::int32_t* positions;
  std::byte *sort_scratch, *sum_scratch;

  CAIRN_DEVICE std::int64_t missing_count() const { return batch.ranks[lookups - 1]; }
  CAIRN_DEVICE bool has_victim(std::int64_t m) const {
    return m < window && victims.dear[m] != kInFlight;
  }
};

// Empties the cache.
void clear_cache(Queue& queue, const CacheView& view);
// Steps 1 to 4. `changes`: whether the batch's step may change its rows. `bad_id`, unless it has no
// record, gets the ids that are out of range.
void find_requests(Queue& queue, const CacheView& view, OrderedIds& order, const Lookups& lookups,
                   std::int32_t batch, bool changes, const FaultSite& bad_id);
void choose_victims(Queue& queue, const CacheView& view, std::int32_t batch);
// `no_room` gets the number of requests for which there is no victim.
void exchange_rows(Queue& queue, const CacheView& view, std::int32_t batch, bool changes,
                   const FaultSite& no_room);
void write_places(Queue& queue, const CacheView& view, std::int32_t* places);
// Copies changed rows home. Those that no batch from `first_in_flight` on looks up are then no
// longer changed; the others' steps have yet to change them.
void copy_home(Queue& queue, const CacheView& view, std::int32_t first_in_flight);

}  // namespace cairn::cuda
