// How rows of float32 travel between workers and shards.
#pragma once
#include <cstdint>

namespace cairn {

// The numbers are those of the wire format.
enum class RowEncoding : std::uint8_t {
  kRaw = 0,       // the variable's dtype, little-endian
  kBfloat16 = 1,  // float32 values rounded to bfloat16; other dtypes raw
};

}  // namespace cairn
