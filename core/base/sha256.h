// SHA-256: the checksum of files that travel to other machines and stay there for years. CRC-32C
// (checksum.h) finds damage by a disk or a cable; SHA-256 finds forged files too.
//   Source  FIPS 180-4, "Secure Hash Standard", sections 5 and 6.2.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// The hash of bytes that come in pieces.
//   Cost    some 200 MB/s of one processor.
//   Thread  one.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  // The hash of all bytes so far, as 64 lower-case hex digits. Ends the hash: no call may follow.
  std::string hex();

 private:
  void take_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> waiting_{};  // bytes of a block that is not full yet
  std::uint64_t bytes_ = 0;
};

// The same of bytes that are all there.   Thread  any.
std::string sha256(std::string_view bytes);

}  // namespace cairn
