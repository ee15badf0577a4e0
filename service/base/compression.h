// Compression: of elements on their way from a data worker to a consumer.
//   Source  tf.data.experimental.service's `compression`, of which AUTO is the default there too.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::rpc {
struct Address;
}

namespace cairn::service {

enum class Compression : std::uint8_t {
  kAuto,  // kZlib, unless the data worker is on the consumer's own machine
  kOff,
  kZlib,  // at level 1
};

std::string_view name_of(Compression compression);  // "ZLIB"
// Errors  InvalidArgument: there is no such compression; lists them.
Compression compression_of(std::uint8_t number);
// kOff or kZlib.
Compression chosen(Compression asked, const rpc::Address& data_worker);

// An element, packed. Its columns are a message of their own before they are compressed.
struct PackedElement {
  std::vector<std::byte> bytes;
  std::uint64_t raw_bytes = 0;  // before
};
//   Cost  some 10 ms per MB: not for a loop's thread.
PackedElement pack(const Element& element);
// Trusts nothing.
//   Errors  InvalidArgument: bytes that are none of pack()'s, or an element above 512 MB.
Element unpack(const std::byte* bytes, std::size_t size, std::uint64_t raw_bytes);

}  // namespace cairn::service
