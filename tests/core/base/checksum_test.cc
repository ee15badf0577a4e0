// CRC-32C, against what others compute and against itself in pieces.
#include "core/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/random.h"

namespace cairn {
namespace {

// RFC 3720, appendix B.4.
TEST(Checksum, IsThatOfTheStandard) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

// Long texts are summed in another way than short ones.
TEST(Checksum, IsTheSameInPiecesOfAnySize) {
  Random random(1);
  std::string text(20'000, '\0');
  for (char& c : text) c = static_cast<char>(random.below(256));
  for (const std::size_t size : {0u, 1u, 7u, 1023u, 3071u, 3072u, 3073u, 6144u, 9001u, 20'000u}) {
    const std::string_view whole(text.data() + 20'000 - size, size);
    std::uint32_t by_bytes = 0;
    for (const char& c : whole) by_bytes = crc32c({&c, 1}, by_bytes);
    EXPECT_EQ(crc32c(whole), by_bytes) << size;
    const std::size_t cut = size / 3;
    EXPECT_EQ(crc32c(whole.substr(cut), crc32c(whole.substr(0, cut))), by_bytes) << size;
  }
}

}  // namespace
}  // namespace cairn
