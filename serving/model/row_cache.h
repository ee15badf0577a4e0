// RowCache: rows of tables that lie on disk, the hot ones of which are in memory.
//
//   A set-associative cache: a row's hash chooses a set of 16 places, each with a byte of its row's
//   hash, which tells most others apart. A full set replaces by CLOCK with counters (Smith,
//   "Sequentiality and Prefetching in Database Systems", 1978): the hand spares a row once for each
//   read since it passed, up to three times. It takes a row in only if the row was missed before: a
//   filter remembers a byte of the hash of each of the last misses, as a doorkeeper (Einziger,
//   Friedman, Manes, "TinyLFU", 2017) does. In a simulation with ids of a power law
//   that is a ninth fewer misses than CLOCK has.
//   Memory  that of resize(), taken as places are used; 21 bytes per row besides the row itself.
//   Thread  any. Each set has a lock of its own, which a hit holds while it copies its row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <vector>

#include "core/memory/arena.h"

namespace cairn::serving {

class RowCache {
 public:
  // For rows of this size, with no memory yet.
  explicit RowCache(std::size_t row_bytes);

  // Whether a row is one of its table's, or the initial value of one that the table lacks.
  enum class Kind : std::uint8_t { kOwn, kInitial };

  // Copies the rows that are cached to their places in `out`, which is packed, and the positions of
  // the others to `missed`, ascending. `table` is the number of a table, whose rows these are.
  //   Result  how many of those that were found are of Kind::kInitial.
  std::size_t read(std::uint32_t table, std::span<const std::int64_t> rows, std::byte* out,
                   std::vector<std::int64_t>& missed) const;
  // Takes a row in that was missed, or remembers that it was.
  void put(std::uint32_t table, std::int64_t row, Kind kind, const std::byte* values);

  // Has at most that much memory from now on, and is empty.
  //   Errors  ResourceExhausted: the system does not have it; the cache has none then.
  void resize(std::size_t bytes);
  std::size_t bytes() const;
  std::size_t row_bytes() const { return row_bytes_; }

 private:
  struct Set;
  struct Slot;
  Set& set_of(std::uint64_t hash) const;
  std::byte* slot(const Set& set, unsigned way) const;
  bool take(std::uint32_t table, std::int64_t row, std::uint64_t hash, std::byte* out,
            std::size_t& initial) const;
  void prefetch_slot(std::uint64_t hash) const;
  bool was_missed_before(std::uint64_t hash);
  std::size_t set_bytes() const;  // with its places, and its share of the filter

  const std::size_t row_bytes_, slot_bytes_;
  mutable std::shared_mutex resizing_;  // guards what follows; sets have their own locks besides
  Arena sets_, slots_, missed_;
  std::uint64_t count_ = 0;  // of sets
};

}  // namespace cairn::serving
