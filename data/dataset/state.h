// The bytes of an IteratorState: whole numbers of variable length, one stage after another from the
// source up. There are no names and no types: writer and reader of a stage must agree, and a change
// of either changes kStateVersion in data/stage/open.cc.
//   Source  numbers are LEB128, 7 bits per byte, the lowest first, as in DWARF and Protocol
//           Buffers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cairn {

// Appends to a state.
//   Thread  one at a time.
class StateWriter {
 public:
  void number(std::uint64_t value);
  void blob(std::span<const std::byte> bytes);  // its length, then itself
  std::vector<std::byte> take() { return std::move(bytes_); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// The most of anything that a state may count: no data is that long, and counting on from it does
// not overflow.
inline constexpr std::int64_t kCountMax = std::int64_t{1} << 60;

// Reads a state, which may be damaged or forged: every call throws InvalidArgument where the bytes
// do not hold what is asked for.
//   Thread  one at a time.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t number();
  std::int64_t number_up_to(std::int64_t most, std::string_view what);  // in [0, most]
  std::span<const std::byte> blob();
  void expect_end() const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace cairn
