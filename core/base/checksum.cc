#include "core/base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cairn {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// The register times x, in the polynomial's ring. Bits are reversed: the highest power is bit 0.
constexpr std::uint32_t times_x(std::uint32_t crc) {
  return (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
}

// Table k holds what a byte contributes when k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < 8; ++slice)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[slice][byte] =
          (tables[slice - 1][byte] >> 8) ^ tables[0][tables[slice - 1][byte] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

// Eight bytes per turn by table.
//   Source  "slicing by 8": Kounavis, Berry, "Novel table lookup-based algorithms for
//           high-performance CRC generation", IEEE Trans. Computers 57(11), 2008.
std::uint32_t portable(const char* at, std::size_t size, std::uint32_t crc) {
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; size > 0; ++at, --size)
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
std::uint64_t word_at(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const char* at, std::size_t size,
                                                               std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) wide = _mm_crc32_u64(wide, word_at(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++at, --size) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*at));
  return crc;
}

// A register's factor for `bytes` that follow it, less the 33 powers that the product of two
// registers and the instruction bring along.
constexpr std::uint32_t factor_of(std::size_t bytes) {
  std::uint32_t power = 0x80000000u;
  for (std::size_t bit = 33; bit < 8 * bytes; ++bit) power = times_x(power);
  return power;
}

// The instruction takes three cycles and one can begin in each: three stretches of the bytes are
// summed side by side, and their registers added as if each had come after the ones before it.
//   Source  Gopal, Ozturk, Guilford et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32
//           Instruction", Intel, 2011.
__attribute__((target("sse4.2,pclmul"))) std::uint32_t three_at_once(const char* at,
                                                                     std::size_t size,
                                                                     std::uint32_t crc) {
  constexpr std::size_t kStretch = 1024;
  // Constants by name: as mere arguments a compiler that does not optimise computes them per call.
  constexpr std::uint32_t kOneOn = factor_of(kStretch), kTwoOn = factor_of(2 * kStretch);
  const __m128i factors = _mm_set_epi64x(kOneOn, kTwoOn);
  for (; size >= 3 * kStretch; at += 3 * kStretch, size -= 3 * kStretch) {
    std::uint64_t first = crc, second = 0, third = 0;
    for (std::size_t i = 0; i < kStretch; i += 8) {
      first = _mm_crc32_u64(first, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kStretch + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStretch + i));
    }
    const __m128i registers =
        _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first));
    const __m128i moved = _mm_xor_si128(_mm_clmulepi64_si128(registers, factors, 0x00),
                                        _mm_clmulepi64_si128(registers, factors, 0x11));
    const auto product = static_cast<std::uint64_t>(_mm_cvtsi128_si64(moved));
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(0, product) ^ third);
  }
  return by_instruction(at, size, crc);
}
#endif

}  // namespace

// The register begins and ends inverted, so inverting `crc` gives back the register to go on from.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  static const bool has_product = has_instruction && __builtin_cpu_supports("pclmul") != 0;
  if (has_product) return ~three_at_once(bytes.data(), bytes.size(), ~crc);
  if (has_instruction) return ~by_instruction(bytes.data(), bytes.size(), ~crc);
#endif
  return ~portable(bytes.data(), bytes.size(), ~crc);
}

}  // namespace cairn
