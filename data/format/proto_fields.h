// ProtoFields: the fields of one message of protocol buffers, one after another. The bytes may be
// anything; no field reaches beyond them.
//   Source  protobuf.dev/programming-guides/encoding
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn {

class ProtoFields {
 public:
  enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit ProtoFields(std::string_view message)
      : at_(message.data()), end_(at_ + message.size()) {}

  // Goes to the next field; false: there is none, or the bytes are not fields (broken()).
  bool next() {
    if (at_ == end_) return false;
    std::uint64_t tag = 0;
    if (!varint(at_, end_, tag)) return fail();
    field_ = tag >> 3;
    wire_ = static_cast<Wire>(tag & 7);
    switch (wire_) {
      case Wire::kVarint: return varint(at_, end_, number_) || fail();
      case Wire::kFixed64: return take(8);
      case Wire::kFixed32: return take(4);
      case Wire::kBytes: return varint(at_, end_, number_) ? take(number_) : fail();
    }
    return fail();  // groups, a wire type out of use, and numbers that are no wire type
  }
  bool broken() const { return broken_; }

  std::uint64_t field() const { return field_; }
  Wire wire() const { return wire_; }
  bool is(std::uint64_t field, Wire wire) const { return field_ == field && wire_ == wire; }
  std::uint64_t number() const { return number_; }   // kVarint
  std::string_view bytes() const { return bytes_; }  // all others

  // At most ten bytes, of seven bits each, the lowest first. Most have one, and that case is small
  // enough to be inlined.
  static bool varint(const char*& at, const char* end, std::uint64_t& value) {
    if (at == end || static_cast<unsigned char>(*at) >= 0x80) return long_varint(at, end, value);
    value = static_cast<unsigned char>(*at++);
    return true;
  }

 private:
  [[gnu::noinline]] static bool long_varint(const char*& at, const char* end,
                                            std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70 && at != end; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t size) {
    if (size > static_cast<std::uint64_t>(end_ - at_)) return fail();
    bytes_ = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  bool fail() {
    broken_ = true;
    at_ = end_;
    return false;
  }

  const char *at_, *end_;
  std::uint64_t field_ = 0, number_ = 0;
  Wire wire_ = Wire::kVarint;
  std::string_view bytes_;
  bool broken_ = false;
};

}  // namespace cairn
