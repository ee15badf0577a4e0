// Where a lookup leads: its table, and its row.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::cuda {

// The last i of [0, count) with first[i] <= at, where first[0] = 0 <= at < first[count]: the range
// that holds `at`. Ranges may be empty.
__device__ inline std::int64_t range_of(const std::int64_t* first, std::int64_t count,
                                        std::int64_t at) {
  std::int64_t low = 0, high = count;  // first[low] <= at < first[high]
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (__ldg(first + middle) <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The floats before the row of lookup `at` in tables.rows; -1 if there is no such row.
template <typename Id>
__device__ inline std::int64_t row_offset(const Tables& tables, const Id* ids,
                                          const std::int64_t* first_lookup, std::int64_t at) {
  const std::int64_t table = range_of(first_lookup, tables.count, at);
  const std::int64_t id = static_cast<std::int64_t>(__ldg(ids + at));
  const std::int64_t begin = __ldg(tables.first_row + table);
  if (id < 0 || id >= __ldg(tables.first_row + table + 1) - begin) return -1;
  return (begin + id) * tables.row_stride;
}

// The table of a scattered set that holds lookup `at`.
__device__ inline int table_of(const ScatteredTables& set, std::int64_t at) {
  int low = 0, high = set.count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (set.tables[middle].first_lookup <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Calls `call` with a null pointer of the ids' type.
template <typename Call>
void with_id_type(IdType type, const Call& call) {
  if (type == IdType::kInt32)
    call(static_cast<const std::int32_t*>(nullptr));
  else
    call(static_cast<const std::int64_t*>(nullptr));
}

}  // namespace cairn::cuda
