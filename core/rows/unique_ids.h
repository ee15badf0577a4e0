// The distinct values of a list of ids, ascending, and where each id went.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

// Keeps its memory between uses. Thread: one.
class UniqueIds {
 public:
  void clear() { ids_.clear(); }
  void add(const std::int32_t* ids, std::int64_t n) { ids_.insert(ids_.end(), ids, ids + n); }
  void add(const std::int64_t* ids, std::int64_t n) { ids_.insert(ids_.end(), ids, ids + n); }
  // Position of the first id added outside [0, bound), or -1.
  std::int64_t first_outside(std::int64_t bound) const;
  std::int64_t id(std::int64_t position) const { return ids_[static_cast<std::size_t>(position)]; }
  // Fills the results. Every id is in [0, bound).
  // Cost  linear in the ids and, for dense ids, in bound / 64.
  void find(std::int64_t bound);

  std::span<const std::int64_t> unique() const { return {unique_->data(), count_}; }
  // For each id added, in order, its place in unique().
  std::span<const std::int32_t> inverse() const { return inverse_; }
  // unique() as a tensor that keeps the memory alive; it changes with the next find().
  Tensor tensor() const;

 private:
  void find_by_bitmap(std::int64_t bound);
  void find_by_sorting(std::int64_t bound);

  std::vector<std::int64_t> ids_;
  std::shared_ptr<std::vector<std::int64_t>> unique_ =
      std::make_shared<std::vector<std::int64_t>>();
  std::size_t count_ = 0;
  std::vector<std::int32_t> inverse_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> ranks_;
  struct Entry {
    std::int64_t id;
    std::int32_t position;
  };
  std::vector<Entry> entries_, other_;
};

}  // namespace cairn
