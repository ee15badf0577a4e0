// Bulk walked in several stripes in turn.
//
// A processor fetches ahead of each stream of addresses that it notices, but only so far ahead of
// each: with one, some of memory's speed stays unused (bench/notebook.md).
#pragma once
#include <cstddef>

#include "core/memory/bulk_copy.h"

namespace cairn {

inline constexpr std::size_t kPageBytes = 4 << 10;

// Elements of each stripe, of `count` of `bytes` each; the rest, and all of what is no bulk, comes
// after the last stripe. Stripe k begins k / stripes of a page beyond a whole number of pages: a
// load whose place in its page is that of a store just made would wait for it.
constexpr std::size_t stripe_length(std::size_t count, std::size_t bytes, std::size_t stripes) {
  const std::size_t page = kPageBytes / bytes, share = page / stripes;
  return count * bytes < kBulkBytes ? 0 : (count / stripes - share) / page * page + share;
}

}  // namespace cairn
