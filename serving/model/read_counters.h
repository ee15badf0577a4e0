// Counts of a model's reads of rows, over all of its versions.
//   Thread  any.
#pragma once
#include <atomic>
#include <cstdint>

namespace cairn::serving {

struct ReadCounters {
  std::atomic<std::uint64_t> unknown_ids{0};     // that a hashed table had no row for
  std::atomic<std::uint64_t> cache_hits{0};      // rows of tables that are read from disk
  std::atomic<std::uint64_t> cache_misses{0};    // the same
  std::atomic<std::uint64_t> stale_rows{0};      // of tables on the ps, that did not come in time
  std::atomic<std::uint64_t> damaged_blocks{0};  // of such tables
};

inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
  if (count > 0) counter.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace cairn::serving
