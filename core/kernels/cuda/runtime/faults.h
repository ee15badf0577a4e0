// Faults: values that a kernel finds wrong while it runs, such as an id out of range.
//
// A kernel cannot throw, and the host does not wait for it. It writes what it found to a record,
// skips the value, and goes on; the queue looks at the record whenever it has waited for its
// stream, and raises the error then. Of several faults the first kernel's counts, and of that
// kernel's the one at the lowest position.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/runtime/group.h"

namespace cairn::cuda {

struct FaultRecord {
  unsigned lock;      // held while the rest is written
  std::int32_t site;  // 0: no fault; else which kernel, see Queue::add_fault()
  std::int64_t position, value;
};

// The place through which a kernel reports. Copied into kernels.
struct FaultSite {
  FaultRecord* record = nullptr;  // in device memory
  int* any = nullptr;             // in pinned host memory: not 0 once there is a fault
  std::int32_t site = 0;

  CAIRN_DEVICE void report(std::int64_t position, std::int64_t value) const {
#ifdef __CUDACC__
    while (atomicCAS(&record->lock, 0u, 1u) != 0u) {
    }
    __threadfence();
    volatile FaultRecord* const seen = record;
#else
    FaultRecord* const seen = record;
#endif
    if (seen->site == 0 || (seen->site == site && position < seen->position)) {
      seen->site = site;
      seen->position = position;
      seen->value = value;
    }
    *any = 1;
#ifdef __CUDACC__
    __threadfence();
    atomicExch(&record->lock, 0u);
#endif
  }
};

}  // namespace cairn::cuda
