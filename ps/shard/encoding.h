// The Encoding seam: how values look on the wire.
#pragma once
#include <cstddef>

#include "core/tensor/tensor.h"
#include "ps/shard/requests.h"

namespace cairn::ps {

// Bytes that an element of `dtype` takes on the wire.
std::size_t wire_bytes(Encoding encoding, DType dtype);
inline bool is_narrowed(Encoding encoding, DType dtype) {
  return encoding == Encoding::kBfloat16 && dtype == DType::kFloat32;
}

}  // namespace cairn::ps
