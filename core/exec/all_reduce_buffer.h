// One value that a step hands to an all-reduce: the request of a replica to the others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/graph/reduce_op.h"
#include "core/tensor/tensor.h"

namespace cairn {

// One value of an all-reduce: this replica's share, to be replaced by what all replicas' shares
// come to, element by element. Every replica must end with the same bits, or the replicas'
// variables drift apart.
struct AllReduceBuffer {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::int64_t elements = 0;  // a later run of the same plan may have more or fewer
  // In the host's memory. nullptr: they lie in the memory of devices, which sum them themselves
  // (core/kernels/device_group.h); the members only meet, and of one call all values lie alike.
  std::byte* values = nullptr;
  std::shared_ptr<const void> owner;  // keeps `values` valid, even if the step is given up
};

// Whether devices sum it. No value at all may be anywhere.
inline bool lies_on_device(const AllReduceBuffer& value) {
  return value.values == nullptr && value.elements > 0;
}

}  // namespace cairn
