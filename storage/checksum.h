// CRC-32C (Castagnoli, IEEE Trans. Commun. 41(6), 1993): the checksum of every block, file and
// manifest of ours.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn::storage {

// The checksum of `bytes`, going on from `crc`, the checksum of what came before.  Thread: any.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0);

}  // namespace cairn::storage
