// Stores past the caches, for what this core does not read again at once: lines that are
// overwritten are not read first, and what the caches hold stays.
#pragma once
#include <cstddef>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace cairn {

inline constexpr std::size_t kStreamedLine = 64;

// Copies so many lines; `to` is aligned to them. Where the processor has no such stores, an
// ordinary copy.
inline void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
#ifdef __SSE2__
  for (std::size_t i = 0; i < lines; ++i, to += kStreamedLine, from += kStreamedLine) {
    __m128i piece[4];
    for (int j = 0; j < 4; ++j)
      piece[j] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + j);
    for (int j = 0; j < 4; ++j) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + j, piece[j]);
  }
#else
  std::memcpy(to, from, lines * kStreamedLine);
#endif
}

// Call it after the last stream_lines(), before another thread learns of the lines: these stores
// are not ordered with others by themselves.
inline void end_of_stream() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace cairn
