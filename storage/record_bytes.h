// The bytes of a record: numbers little-endian, and a checksum behind them. What is read may be
// damaged in any way, so every size is compared with what is left.
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/graph/update_rule.h"

namespace cairn::storage {

// A readable form of any key, for messages.
std::string describe_key(std::string_view bytes);

// Appends fields; finish() adds the checksum, which covers the key as well.
class RecordWriter {
 public:
  template <typename T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
  }
  void bytes(const std::byte* data, std::size_t size) {
    out_.append(reinterpret_cast<const char*>(data), size);
  }
  void reserve(std::size_t size) { out_.reserve(size); }
  std::string finish(std::string_view key) {
    number(crc32c(out_, crc32c(key)));
    return std::move(out_);
  }

 private:
  std::string out_;
};

// Reads fields of a value whose checksum is right, and fails with the key's name where they do not
// fit.
class RecordReader {
 public:
  [[noreturn]] static void bad(std::string_view key, const char* what) {
    throw DataLossError(
        str("the record at ", describe_key(key), " cannot be read: ", what,
            ". Restore from an older checkpoint; `cairn ckpt verify` names the sound ones"));
  }

  RecordReader(std::string_view key, std::string_view value) : key_(key), left_(value) {
    if (value.size() < sizeof(std::uint32_t)) bad(key, "it is shorter than its checksum");
    left_.remove_suffix(sizeof(std::uint32_t));
    std::uint32_t stored;
    std::memcpy(&stored, value.data() + left_.size(), sizeof stored);
    if (crc32c(left_, crc32c(key)) != stored) bad(key, "its checksum does not match its bytes");
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad(key_, "a row number is malformed");
  }
  RuleKind rule_kind() {
    const auto kind = number<std::uint8_t>();
    want(kind < kRuleKindCount, "it has no such update rule, or a newer version of Cairn wrote it");
    return static_cast<RuleKind>(kind);
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  std::string_view take(std::size_t size) {
    if (size > left_.size()) bad(key_, "it ends early");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::size_t left() const { return left_.size(); }
  void want(bool condition, const char* what) const {
    if (!condition) bad(key_, what);
  }

 private:
  std::string_view key_;
  std::string_view left_;
};

}  // namespace cairn::storage
