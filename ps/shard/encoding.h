// The seam of encodings: how values look on the wire.
#pragma once
#include <cstddef>

#include "core/tensor/tensor.h"
#include "ps/shard/requests.h"

namespace cairn::ps {

// Bytes that an element of `dtype` takes on the wire.
std::size_t wire_bytes(RowEncoding encoding, DType dtype);
inline bool is_narrowed(RowEncoding encoding, DType dtype) {
  return encoding == RowEncoding::kBfloat16 && dtype == DType::kFloat32;
}

}  // namespace cairn::ps
