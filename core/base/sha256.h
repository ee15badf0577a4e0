// SHA-256: the checksum of files that travel to other machines and stay there for years. CRC-32C
// (checksum.h) finds damage by a disk or a cable; SHA-256 finds forged files too.
//   Source  FIPS 180-4, "Secure Hash Standard", sections 5 and 6.2; Gulley, Gopal, Yap et al.,
//           "Intel SHA Extensions", 2013.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// The hash of bytes that come in pieces.
//   Cost    some 1.8 GB/s of one processor that has instructions for it, 300 MB/s of others.
//   Thread  one.
class Sha256 {
 public:
  // kPortable is plain C++, even if the processor has instructions for SHA-256.
  enum class Means : bool { kBest, kPortable };
  explicit Sha256(Means means = Means::kBest);
  void update(std::string_view bytes);
  // The hash of all bytes so far, as 64 lower-case hex digits. Ends the hash: no call may follow.
  std::string hex();

 private:
  void take_blocks(const unsigned char* blocks, std::size_t count);

  const bool has_instructions_;
  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> waiting_{};  // bytes of a block that is not full yet
  std::uint64_t bytes_ = 0;
};

// The same of bytes that are all there.   Thread  any.
std::string sha256(std::string_view bytes);

}  // namespace cairn
