// The loop that every read of scattered rows ends in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn {

// Which core reads the values next. Bulk data for another core, in shared memory, bypasses our
// caches; a socket, or the step itself, reads it back on this one.
enum class NextReader : std::uint8_t { kThisCore, kAnotherCore };

// Copies rows `ids` (verified), `row_bytes` each and `stride` bytes apart from `base`, packed to
// `out`, prefetching ahead. Where another core reads next, rows that are whole lines bypass the
// caches: give kAnotherCore only for bulk.
void gather_rows(const std::byte* base, std::size_t stride, std::size_t row_bytes,
                 std::span<const std::int64_t> ids, std::byte* out,
                 NextReader next = NextReader::kThisCore);

}  // namespace cairn
