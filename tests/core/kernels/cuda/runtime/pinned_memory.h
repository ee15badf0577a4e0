// PinnedMemory: what the fake driver knows about pinned memory of the host, and about the copies of
// it that are under way: until the host has waited for one, what it brings is not there, and what
// it reads must not change.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "tests/core/kernels/cuda/runtime/stream_order.h"

namespace cairn::testing {

class PinnedMemory {
 public:
  enum class Kind : std::uint8_t { kAllocated, kWhereItLies };
  struct Block {
    std::size_t bytes = 0;
    Kind kind = Kind::kAllocated;
  };

  std::size_t blocks() const { return blocks_.size(); }
  void add(std::byte* begin, std::size_t bytes, Kind kind) { blocks_[begin] = {bytes, kind}; }
  // Ends the process if a copy is under way.
  void remove(std::byte* begin) {
    for (const UnderWay& copy : under_way_)
      CAIRN_CHECK(copy.host < begin || copy.host >= begin + blocks_.at(begin).bytes,
                  "pinned memory is released while a copy of it is under way");
    blocks_.erase(begin);
  }
  // nullptr: it is not pinned.
  const Block* find(const std::byte* at) const {
    const auto after = blocks_.upper_bound(const_cast<std::byte*>(at));
    if (after == blocks_.begin()) return nullptr;
    const auto& [begin, block] = *std::prev(after);
    return at < begin + block.bytes ? &block : nullptr;
  }
  bool holds_some_of(const std::byte* begin, std::size_t bytes) const {
    const auto after = blocks_.upper_bound(const_cast<std::byte*>(begin));
    return find(begin) != nullptr || (after != blocks_.end() && after->first < begin + bytes);
  }

  // A copy that the stream has now been given. One side is pinned.
  //   Errors  Internal: another copy of the memory is under way, or a part of it is not pinned.
  void begin_copy(StreamOrder& order, cuda::Stream stream, Device::Direction direction,
                  std::byte* to, const std::byte* from, std::size_t bytes) {
    const bool out = direction == Device::Direction::kOut;
    std::byte* const host = out ? to : const_cast<std::byte*>(from);
    for (const UnderWay& other : under_way_)
      if ((out || other.out) && other.host < host + bytes && host < other.host + other.bytes.size())
        throw InternalError("two copies of the same pinned memory are under way");
    if (find(host + bytes - 1) != find(host))
      throw InternalError("a copy reaches beyond the pinned memory in which it begins");
    under_way_.push_back({stream, order.time(stream), host, {from, from + bytes}, out});
    std::memcpy(to, from, bytes);
    if (out) std::memset(host, 0xff, bytes);
  }
  // Ends those that the host now knows to have run.
  //   Errors  Internal: memory has changed under one of them.
  void end_copies(StreamOrder& order) {
    bool changed = false;
    std::erase_if(under_way_, [&](const UnderWay& copy) {
      if (!order.host_has_seen(copy.stream, copy.time)) return false;
      if (copy.out)
        std::memcpy(copy.host, copy.bytes.data(), copy.bytes.size());
      else
        changed = changed || std::memcmp(copy.host, copy.bytes.data(), copy.bytes.size()) != 0;
      return true;
    });
    if (changed)
      throw InternalError("pinned memory was written to while a copy from it was under way");
  }

 private:
  struct UnderWay {
    cuda::Stream stream;
    std::int64_t time;
    std::byte* host;
    std::vector<std::byte> bytes;  // of a copy in, what it reads; of a copy out, what it brings
    bool out;
  };

  std::map<std::byte*, Block> blocks_;
  std::vector<UnderWay> under_way_;
};

}  // namespace cairn::testing
