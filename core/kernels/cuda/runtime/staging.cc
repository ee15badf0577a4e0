#include "core/kernels/cuda/runtime/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::cuda {
namespace {

// Copies begin at the boundaries that the engines like.
constexpr std::size_t kAlign = 64;

}  // namespace

Staging::~Staging() {
  for (const Block& block : blocks_) {
    driver_.destroy(block.ran);
    driver_.release_pinned(block.memory);
  }
}

void Staging::send(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const Place place = take(stream, bytes);
    std::memcpy(place.at, from, place.bytes);
    driver_.copy(stream, Device::Direction::kIn, to, place.at, place.bytes);
    to += place.bytes;
    from += place.bytes;
    bytes -= place.bytes;
  }
}

void Staging::fetch(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const Place place = take(stream, bytes);
    driver_.copy(stream, Device::Direction::kOut, place.at, from, place.bytes);
    place.block.arrivals.push_back({to, place.at, place.bytes});
    to += place.bytes;
    from += place.bytes;
    bytes -= place.bytes;
  }
}

void Staging::deliver() {
  for (Block& block : blocks_) free(block);
}

void Staging::drop() noexcept {
  for (Block& block : blocks_) block.arrivals.clear();
}

// The event of a block says when all of its copies have run, so they are of one stream.
Staging::Place Staging::take(Stream stream, std::size_t wanted) {
  Block* block = blocks_.empty() ? &next() : &blocks_[current_];
  if (block->used == kBlockBytes || (block->used > 0 && block->stream != stream)) {
    close(*block);
    block = &next();
  }
  block->stream = stream;
  const std::size_t bytes = std::min(wanted, kBlockBytes - block->used);
  std::byte* const at = block->memory + block->used;
  block->used = std::min(kBlockBytes, (block->used + bytes + kAlign - 1) / kAlign * kAlign);
  return {*block, at, bytes};
}

void Staging::close(Block& block) {
  driver_.record(block.ran, block.stream);
  block.under_way = true;
}

Staging::Block& Staging::next() {
  const std::size_t after = blocks_.empty() ? 0 : (current_ + 1) % blocks_.size();
  const bool can_grow = blocks_.size() < kBlocksMax;
  if (blocks_.empty() ||
      (can_grow && blocks_[after].under_way && !driver_.reached(blocks_[after].ran))) {
    Block made;
    made.memory = driver_.allocate_pinned(kBlockBytes);
    made.ran = driver_.make_event();
    current_ = blocks_.empty() ? 0 : current_ + 1;
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(current_), std::move(made));
    return blocks_[current_];
  }
  current_ = after;
  Block& oldest = blocks_[current_];
  if (oldest.under_way) driver_.wait(oldest.ran);
  free(oldest);
  return oldest;
}

void Staging::free(Block& block) {
  for (const Arrival& one : block.arrivals) std::memcpy(one.to, one.from, one.bytes);
  block.arrivals.clear();
  block.used = 0;
  block.under_way = false;
}

}  // namespace cairn::cuda
