// Ids in ascending order, equal ones in the order in which they occur: what sums over equal ids
// walk, so that they add in a fixed order and give the same bits in every run.
#pragma once
#include <cstdint>
#include <memory>

#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {

class OrderedIds {
 public:
  // Sorts `n` ids below `bound`, with scratch in the memory of the queue's device.
  //   Errors  Unimplemented: 2^31 ids or more.
  OrderedIds(Queue& queue, std::int64_t n, std::int64_t bound);

  enum class Negative : std::uint8_t { kFault, kDropped };
  // Enqueues the sorting. An id that is not below the bound is reported to `fault` and left out.
  template <typename Id>
  void sort(const Id* ids, Negative negative, const FaultSite& fault);

  // After sort(): `n` ids in order, with the positions that they came from. What was left out comes
  // last, with the id `bound`.
  const std::uint64_t* ids() const { return sorted_ids_->as<std::uint64_t>(); }
  const std::int32_t* positions() const { return sorted_positions_->as<std::int32_t>(); }
  std::int64_t count() const { return n_; }
  std::int64_t bound() const { return bound_; }

 private:
  Queue& queue_;
  std::int64_t n_, bound_;
  int bits_;
  std::shared_ptr<Memory> ids_, positions_, sorted_ids_, sorted_positions_, scratch_;
};

}  // namespace cairn::cuda
