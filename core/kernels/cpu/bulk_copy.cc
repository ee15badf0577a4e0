#include "core/kernels/cpu/bulk_copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace cairn {
namespace {

constexpr std::size_t kBulk = 2 << 20;

#ifdef __SSE2__
constexpr std::size_t kLine = 64;

void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += kLine, from += kLine) {
    __m128i piece[4];
    for (int j = 0; j < 4; ++j) piece[j] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + j);
    for (int j = 0; j < 4; ++j) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + j, piece[j]);
  }
  _mm_sfence();  // such stores are not ordered with others by themselves
}
#endif

}  // namespace

void copy_bulk(void* to, const void* from, std::size_t bytes) {
#ifdef __SSE2__
  if (bytes >= kBulk) {
    auto* out = static_cast<std::byte*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(out) % kLine) % kLine;
    const std::size_t lines = (bytes - head) / kLine, middle = lines * kLine;
    std::memcpy(out, in, head);
    stream_lines(out + head, in + head, lines);
    std::memcpy(out + head + middle, in + head + middle, bytes - head - middle);
    return;
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace cairn
