#include "core/base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace cairn {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// 0x82f63b78 is the polynomial with its bits reversed. Table k holds what a byte contributes when k
// more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
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
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const char* at, std::size_t size,
                                                               std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++at, --size) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*at));
  return crc;
}
#endif

}  // namespace

// The register begins and ends inverted, so inverting `crc` gives back the register to go on from.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(bytes.data(), bytes.size(), ~crc);
#endif
  return ~portable(bytes.data(), bytes.size(), ~crc);
}

}  // namespace cairn
