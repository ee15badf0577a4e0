// ProtoMessage: one message of protocol buffers, written field by field. data/format/proto_fields.h
// reads.
//
//     ProtoMessage().bytes(1, "loss").float32(2, 0.5f).take()
//
//   Source  protobuf.dev/programming-guides/encoding
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cairn {

class ProtoMessage {
 public:
  ProtoMessage& number(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  ProtoMessage& float64(int field, double value) {
    tag(field, 1);
    return fixed(value);
  }
  // Bytes, a text, another message, or a packed list.
  ProtoMessage& bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    message_ += value;
    return *this;
  }
  ProtoMessage& message(int field, const ProtoMessage& value) {
    return bytes(field, value.message_);
  }
  ProtoMessage& float32(int field, float value) {
    tag(field, 5);
    return fixed(value);
  }

  // The elements of a packed list, which is itself the bytes() of a field.
  ProtoMessage& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) message_.push_back(static_cast<char>(value | 0x80));
    message_.push_back(static_cast<char>(value));
    return *this;
  }
  // Little-endian, as the processor has it.
  template <typename Number>
  ProtoMessage& fixed(Number value) {
    message_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }

  const std::string& view() const { return message_; }
  std::string take() { return std::exchange(message_, {}); }

 private:
  void tag(int field, std::uint64_t wire) { varint(static_cast<std::uint64_t>(field) << 3 | wire); }
  std::string message_;
};

}  // namespace cairn
