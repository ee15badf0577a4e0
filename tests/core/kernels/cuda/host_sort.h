// Sorting as FakeDriver does it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/error.h"

namespace cairn::testing {

// As Driver::sort() has it.
inline void sort_on_host(std::int64_t n, int bits, const std::uint64_t* keys,
                         std::uint64_t* sorted_keys, const std::int32_t* values,
                         std::int32_t* sorted_values) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i < n; ++i)
    CAIRN_CHECK(bits == 64 || keys[i] >> bits == 0, "a key of more than ", bits, " bits");
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t x, std::int64_t y) { return keys[x] < keys[y]; });
  for (std::int64_t i = 0; i < n; ++i) {
    sorted_keys[i] = keys[order[static_cast<std::size_t>(i)]];
    sorted_values[i] = values[order[static_cast<std::size_t>(i)]];
  }
}

}  // namespace cairn::testing
