#include "core/rows/gather.h"

#include <algorithm>
#include <cstring>

#include "core/memory/stream_lines.h"

namespace cairn {
namespace {

// rows: the more are on their way, the less each costs, until they leave the first-level cache
constexpr std::size_t kGatheredAhead = 64;
// bytes of a row; the hardware follows a longer one by itself
constexpr std::size_t kPrefetched = 256;

// Not its slots too, though the update that follows wants them: that gained a tenth at one time and
// lost a fifth at another, with the same processor and tables of gigabytes (bench/notebook.md).
void prefetch_row(const std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < std::min(bytes, kPrefetched); at += 64)
    __builtin_prefetch(row + at);
}

// `copy` copies one row; of a size known here it compiles to a few moves.
template <typename Copy>
void gather_with(const std::byte* base, std::size_t stride, std::size_t bytes,
                 std::span<const std::int64_t> ids, std::byte* out, Copy copy) {
  const std::size_t ahead = ids.size() > kGatheredAhead ? ids.size() - kGatheredAhead : 0;
  for (std::size_t first = 0; first < std::min(kGatheredAhead, ids.size()); ++first)
    prefetch_row(base + static_cast<std::size_t>(ids[first]) * stride, bytes);
  std::size_t i = 0;
  for (; i < ahead; ++i, out += bytes) {
    prefetch_row(base + static_cast<std::size_t>(ids[i + kGatheredAhead]) * stride, bytes);
    copy(out, base + static_cast<std::size_t>(ids[i]) * stride);
  }
  for (; i < ids.size(); ++i, out += bytes)
    copy(out, base + static_cast<std::size_t>(ids[i]) * stride);
}

template <std::size_t Bytes>
void gather_streamed(const std::byte* base, std::size_t stride, std::span<const std::int64_t> ids,
                     std::byte* out) {
  gather_with(base, stride, Bytes, ids, out, [](std::byte* to, const std::byte* from) {
    stream_lines(to, from, Bytes / kStreamedLine);
  });
  end_of_stream();
}

template <std::size_t Bytes>
void gather_fixed(const std::byte* base, std::size_t stride, std::span<const std::int64_t> ids,
                  std::byte* out) {
  gather_with(base, stride, Bytes, ids, out,
              [](std::byte* to, const std::byte* from) { std::memcpy(to, from, Bytes); });
}

}  // namespace

void gather_rows(const std::byte* base, std::size_t stride, std::size_t row_bytes,
                 std::span<const std::int64_t> ids, std::byte* out, NextReader next) {
  if (next == NextReader::kAnotherCore &&
      reinterpret_cast<std::uintptr_t>(out) % kStreamedLine == 0) {
    if (row_bytes == 64) return gather_streamed<64>(base, stride, ids, out);
    if (row_bytes == 128) return gather_streamed<128>(base, stride, ids, out);
    if (row_bytes == 256) return gather_streamed<256>(base, stride, ids, out);
  }
  switch (row_bytes) {
    case 4: return gather_fixed<4>(base, stride, ids, out);
    case 16: return gather_fixed<16>(base, stride, ids, out);
    case 32: return gather_fixed<32>(base, stride, ids, out);
    case 64: return gather_fixed<64>(base, stride, ids, out);
    case 128: return gather_fixed<128>(base, stride, ids, out);
    case 256: return gather_fixed<256>(base, stride, ids, out);
    default:
      gather_with(
          base, stride, row_bytes, ids, out,
          [row_bytes](std::byte* to, const std::byte* from) { std::memcpy(to, from, row_bytes); });
  }
}

}  // namespace cairn
