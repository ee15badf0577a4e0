// CRC-32C: the checksum of every block, file and manifest of ours. Processors compute it (SSE 4.2),
// and other programs know it.
//   Source  Castagnoli, Bräuer, Herrmann, "Optimization of cyclic redundancy-check codes with 24
//           and 32 parity bits", IEEE Trans. Commun. 41(6), 1993; parameters as in RFC 3720, 12.1.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn {

// The checksum of `bytes`, going on from `crc`, the checksum of what came before.
//   Thread  any.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0);

}  // namespace cairn
