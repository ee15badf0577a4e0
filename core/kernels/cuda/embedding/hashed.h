// Embedding tables whose ids are any 64-bit numbers: an index on the device that gives each id a
// row of a set of tables (tables.h), at its first lookup or a later one.
//
//   The rows are those of an ordinary set, so that gather(), pool(), RowGroups and apply() serve
//   them with the numbers that find_or_add() writes, as ids of type kInt32.
//   Each table has an index of its own: open addressing with linear probing (Knuth, "Sorting and
//   Searching", 6.4) over entries of 16 bytes, so that one access gives both id and row.
//   Room     A table has room for as many rows as the set gives it. An id for which there is no
//            room, in the rows or in the index, gets kNoRow: it reads as zeros, its gradient is
//            dropped, and it is counted as refused.
//   Result   Which row an id gets depends on timing. What the row holds does not.
//   Streams  find_or_add() only enqueues and may be captured; a graph stays good when an index
//            grows. The other calls wait for the stream; they belong between steps.
//   Errors   ResourceExhausted: not enough device memory.  InvalidArgument: sizes that do not fit.
//   Thread   any, one at a time; the caller has set the device.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::cuda {

struct HashedOptions {
  // Entries that each table's index begins with; rounded up to a power of two.
  std::int64_t index_entries = 1 << 16;
  // An id gets its row in the step that brings its k-th occurrence; until then it has kNoRow. All
  // occurrences of an id within a step share one answer. Occurrences are counted in
  // `filter_counters` counters per table (rounded up to a power of two), which ids may share: such
  // an id gets its row early.
  std::int32_t admit_at = 1;
  std::int64_t filter_counters = 1 << 20;
};

// The state of a table's index.
struct IndexState {
  std::int64_t entries = 0;  // capacity
  std::int64_t ids = 0;      // entries in use
  std::int64_t rows = 0;     // rows in use
  std::int64_t refused = 0;  // lookups that found no room since the index was last made anew
  double load() const { return static_cast<double>(ids) / static_cast<double>(entries); }
};

// A new row's parameters: a uniform number from [low, high), a function of seed, table, id and
// column alone (splitmix64: Steele, Lea, Flood, OOPSLA 2014).
struct UniformRows {
  std::uint64_t seed = 0;
  float low = -0.05f, high = 0.05f;
};

class HashedIndex {
 public:
  static constexpr std::int32_t kNoRow = -1;
  static constexpr double kLoadMax = 0.75;

  // `row_room`: how many rows each table has; below 2^31.
  HashedIndex(const std::vector<std::int64_t>& row_room, const HashedOptions& options);
  ~HashedIndex();
  HashedIndex(const HashedIndex&) = delete;
  HashedIndex& operator=(const HashedIndex&) = delete;

  // Writes the row of each id to `rows`, [lookups.count]; ids are of type kInt64. An id without a
  // row gets one, whose parameters `initial` gives and whose slots are `initial_slot`, unless it is
  // not yet admitted. Slots must lie right beside their rows. `step`, in device memory, is noted as
  // the id's last use.
  //   Cost  one access to an index per lookup; two passes with admission.
  void find_or_add(const Tables& tables, const Lookups& lookups, const std::int32_t* step,
                   const UniformRows& initial, float initial_slot, std::int32_t* rows,
                   Stream stream);
  // The same with an initialiser of the caller's: hashed_lookup.cuh.

  std::vector<IndexState> states(Stream stream) const;
  // Doubles the index of each table whose load exceeds kLoadMax until it does not. Rows stay.
  // True: one grew.
  bool grow(Stream stream);
  // Removes the ids that were last used before `step`; their rows go to the next new ids. Steps are
  // below 2^31.   Cost  one pass over the indexes.
  void evict_before(std::int32_t step, Stream stream);

  struct Memory;  // hashed_lookup.cuh
  const Memory& memory() const { return *memory_; }

 private:
  void make_anew(std::size_t table, std::int64_t entries, std::int32_t keep_from, Stream stream);

  std::unique_ptr<Memory> memory_;
};

}  // namespace cairn::cuda
