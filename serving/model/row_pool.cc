#include "serving/model/row_pool.h"

#include "core/base/error.h"

namespace cairn::serving {

RowPool::RowPool(std::size_t row_bytes, std::size_t places_max)
    : row_bytes_(row_bytes), places_max_(places_max), rows_(row_bytes * places_max) {}

std::uint32_t RowPool::take() {
  const std::lock_guard hold(mutex_);
  if (!free_.empty()) {
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  if (used_ == places_max_)
    throw ResourceExhaustedError(str("all ", places_max_,
                                     " places for rows of a table are taken: versions that are "
                                     "pinned or labelled hold them"));
  return static_cast<std::uint32_t>(used_++);
}

void RowPool::settle() {
  const std::lock_guard hold(mutex_);
  rows_.take_small_pages(used_ * row_bytes_);
}

void RowPool::give(const std::vector<std::uint32_t>& places) {
  const std::lock_guard hold(mutex_);
  free_.insert(free_.end(), places.begin(), places.end());
}

bool Generation::succeeded() const {
  const std::lock_guard hold(mutex_);
  return next_ != nullptr;
}

bool Generation::succeed(std::shared_ptr<Generation> next, std::vector<std::uint32_t> replaced) {
  const std::lock_guard hold(mutex_);
  if (next_ != nullptr) return false;
  next_ = std::move(next);
  replaced_ = std::move(replaced);
  return true;
}

}  // namespace cairn::serving
