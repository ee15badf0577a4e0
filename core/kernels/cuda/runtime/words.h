// Copies in words as wide as addresses, lengths and strides allow.
#pragma once
#include <cstdint>

namespace cairn::cuda {

struct alignas(16) Word16 {
  std::uint64_t half[2];
};

// The bytes of the widest word that divides all of what is or-ed together in `places`.
constexpr std::int64_t widest_word(std::uint64_t places) {
  places |= sizeof(Word16);
  return static_cast<std::int64_t>(places & (~places + 1));  // the lowest bit
}

// copy(word) with a word of so many bytes, of which only the type counts.
template <typename Copy>
void with_word(std::int64_t bytes, const Copy& copy) {
  switch (bytes) {
    case 16: return copy(Word16{});
    case 8: return copy(std::uint64_t{});
    case 4: return copy(std::uint32_t{});
    case 2: return copy(std::uint16_t{});
    default: return copy(std::uint8_t{});
  }
}

}  // namespace cairn::cuda
