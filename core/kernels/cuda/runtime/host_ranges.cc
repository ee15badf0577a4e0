#include "core/kernels/cuda/runtime/host_ranges.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

std::shared_ptr<void> HostRanges::add(std::byte* begin, std::size_t bytes) {
  use(begin, bytes);
  return {begin, [this](std::byte* gone) { remove(gone); }};
}

void HostRanges::use(std::byte* begin, std::size_t bytes) {
  const std::lock_guard hold(mutex_);
  if (const auto known = pinned_.find(begin); known != pinned_.end()) {
    if (known->second.bytes != bytes)
      throw ResourceExhaustedError(str("of ", bytes, " bytes of the host's memory ",
                                       known->second.bytes, " are pinned already"));
    ++known->second.uses;
    return;
  }
  driver_.pin(begin, bytes);
  pinned_[begin] = {bytes, 1};
  bytes_ += bytes;
  publish();
}

// Unpins under the lock, so that no other thread pins it again before.
void HostRanges::remove(std::byte* begin) {
  const std::lock_guard hold(mutex_);
  Pinned& range = pinned_.at(begin);
  if (--range.uses > 0) return;
  bytes_ -= range.bytes;
  pinned_.erase(begin);
  publish();
  driver_.unpin(begin);
}

void HostRanges::publish() {
  auto made = std::make_shared<List>();
  made->reserve(pinned_.size());
  for (const auto& [begin, range] : pinned_) made->push_back({begin, begin + range.bytes});
  list_ = std::move(made);
  version_.fetch_add(1, std::memory_order_release);
}

bool HostRanges::View::holds(const std::byte* begin, std::size_t bytes) {
  if (version_ != ranges_.version_.load(std::memory_order_acquire)) {
    const std::lock_guard hold(ranges_.mutex_);
    known_ = ranges_.list_;
    version_ = ranges_.version_.load(std::memory_order_relaxed);
  }
  if (known_ == nullptr) return false;
  const auto after = std::ranges::upper_bound(*known_, begin, {}, &Known::begin);
  return after != known_->begin() && begin + bytes <= std::prev(after)->end;
}

}  // namespace cairn::cuda
