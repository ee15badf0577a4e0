// The loop that every pull ends in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::ps {

// Copies rows `ids` (verified), `row_bytes` each and `stride` bytes apart from `base`, packed to
// `out`. `past_caches`: another core reads them next, and they are many; heeded where rows are
// whole lines.
void gather_rows(const std::byte* base, std::size_t stride, std::size_t row_bytes,
                 std::span<const std::int64_t> ids, std::byte* out, bool past_caches = false);

}  // namespace cairn::ps
