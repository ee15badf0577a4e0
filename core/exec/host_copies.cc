#include "core/exec/host_copies.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {

void HostCopies::begin(std::int32_t value, const std::byte* from, std::size_t bytes) {
  for (const auto& [known, at] : values_)
    if (known == value) return;
  std::byte* const to = room(bytes);
  begin_into(to, from, bytes);
  values_.emplace_back(value, to);
}

void HostCopies::begin_into(std::byte* to, const std::byte* from, std::size_t bytes) {
  begun_ = true;  // before the call: what it begins before it fails has to be dropped as well
  device_.begin_copy_out(to, from, bytes);
}

// Kept first: the memory has to be there for as long as the copy is under way.
void HostCopies::begin_update(std::int32_t node, Tensor to, const std::byte* from) {
  Tensor& kept = updates_.emplace_back(node, std::move(to)).second;
  begun_ = true;
  device_.begin_copy_out_kept(kept.mutable_raw(), from, kept.bytes(), kept.owner());
}

void HostCopies::finish() {
  if (!begun_) return;
  device_.finish_copies_out();
  begun_ = false;
  at_hand_ = values_.size();
}

const std::byte* HostCopies::find(std::int32_t value) const {
  for (std::size_t i = 0; i < at_hand_; ++i)
    if (values_[i].first == value) return values_[i].second;
  return nullptr;
}

Tensor HostCopies::take(std::int32_t node) {
  for (auto& [known, tensor] : updates_)
    if (known == node) return std::exchange(tensor, {});
  CAIRN_CHECK(false, "the values of the update ", node, " were not brought to the host");
}

void HostCopies::clear() {
  if (begun_) device_.drop_copies_out();
  begun_ = false;
  values_.clear();
  at_hand_ = 0;
  updates_.clear();
  block_ = used_ = 0;
}

std::byte* HostCopies::room(std::size_t bytes) {
  constexpr std::size_t kAlign = 64;
  const std::size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  for (; block_ < blocks_.size(); ++block_, used_ = 0)
    if (used_ + rounded <= blocks_[block_].bytes)
      return blocks_[block_].memory.get() + std::exchange(used_, used_ + rounded);
  const std::size_t made = std::max(rounded, kBlockBytes);
  blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(made), made});
  used_ = rounded;
  return blocks_.back().memory.get();
}

}  // namespace cairn
