#include "core/kernels/cuda/runtime/ordered_ids.h"

#include <bit>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {

OrderedIds::OrderedIds(Queue& queue, std::int64_t n, std::int64_t bound)
    : queue_(queue),
      n_(n),
      bound_(bound),
      bits_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bound)))) {
  if (n >= std::int64_t{1} << 31)
    throw UnimplementedError(str(n, " ids in one operation on a GPU; at most 2^31 - 1"));
  const auto count = static_cast<std::size_t>(n);
  ids_ = queue.memory(count * sizeof(std::uint64_t));
  sorted_ids_ = queue.memory(count * sizeof(std::uint64_t));
  positions_ = queue.memory(count * sizeof(std::int32_t));
  sorted_positions_ = queue.memory(count * sizeof(std::int32_t));
  scratch_ = queue.memory(n > 0 ? queue.driver().sort_scratch(n, bits_) : 0);
}

template <typename Id>
void OrderedIds::sort(const Id* ids, Negative negative, const FaultSite& fault) {
  if (n_ == 0) return;
  std::uint64_t* const keys = ids_->as<std::uint64_t>();
  std::int32_t* const positions = positions_->as<std::int32_t>();
  const std::int64_t bound = bound_;
  const bool drops = negative == Negative::kDropped;
  for_each(queue_, n_, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t id = ids[i];
    const bool inside = id >= 0 && id < bound;
    keys[i] = static_cast<std::uint64_t>(inside ? id : bound);
    positions[i] = static_cast<std::int32_t>(i);
    if (!inside && !(drops && id < 0)) fault.report(i, id);
  });
  queue_.driver().sort(queue_.stream(), n_, bits_, keys, sorted_ids_->as<std::uint64_t>(),
                       positions, sorted_positions_->as<std::int32_t>(), scratch_->data());
}

template void OrderedIds::sort(const std::int32_t*, Negative, const FaultSite&);
template void OrderedIds::sort(const std::int64_t*, Negative, const FaultSite&);

}  // namespace cairn::cuda
