#include "ps/snapshot/copy_pool.h"

#include <algorithm>
#include <utility>

namespace cairn::ps {
namespace {

constexpr std::size_t kAheadMax = std::size_t{64} << 20;

}  // namespace

std::byte* CopyPool::take(std::size_t bytes) {
  if (bytes > kSlabBytes) {
    // Rounded up, so that its pages are its own too.
    Arena large(bytes > kChunkBytes ? bytes : kChunkBytes);
    std::byte* const slab = large.data();
    large_.emplace(slab, std::move(large));
    taken_ += bytes;
    return slab;
  }
  if (free_.empty()) add(Arena(kChunkBytes));
  std::byte* const slab = free_.back();
  free_.pop_back();
  taken_ += kSlabBytes;
  return slab;
}

void CopyPool::add(Arena chunk) {
  chunks_.push_back(std::move(chunk));
  // From the end, so that they are handed out as they lie.
  for (std::size_t at = kChunkBytes; at > 0; at -= kSlabBytes)
    free_.push_back(chunks_.back().data() + at - kSlabBytes);
}

std::size_t CopyPool::wants_chunks() const {
  const std::size_t ahead = std::min({taken_ / 2, kAheadMax, room()});
  const std::size_t spare = free_.size() * kSlabBytes;
  return spare < ahead ? (ahead - spare) / kChunkBytes : 0;
}

void CopyPool::give_back(std::byte* slab, std::size_t bytes) {
  taken_ -= bytes;
  if (bytes > kSlabBytes)
    large_.erase(slab);
  else
    free_.push_back(slab);
  if (taken_ > 0) return;
  free_.clear();
  chunks_.clear();
}

}  // namespace cairn::ps
