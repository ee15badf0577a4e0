// CopyPool: the memory into which a shard copies rows aside while a checkpoint is written.
//
//   Handed out in slabs, which lie in chunks of pages of their own: the heap would keep what was
//   freed, and a ps would be as large ever after as it was at the top of a save. A slab that is
//   given back serves the next table, and when the last one is, all chunks go to the system.
//   A push that has to wait for pages is slow, so that another thread may take them ahead of it:
//   see wants_chunks().
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/memory/arena.h"

namespace cairn::ps {

class CopyPool {
 public:
  static constexpr std::size_t kSlabBytes = std::size_t{64} << 10;
  // The least that an arena maps as pages of its own.
  static constexpr std::size_t kChunkBytes = std::size_t{2} << 20;

  // The bound on what is handed out. It is for callers, who ask for room() first: take() knows
  // copies that cannot wait.
  void set_limit(std::size_t bytes) { limit_ = bytes; }
  std::size_t limit() const { return limit_; }
  std::size_t taken() const { return taken_; }
  std::size_t room() const { return taken_ < limit_ ? limit_ - taken_ : 0; }

  // A slab of kSlabBytes, or of more, aligned to 64 bytes.
  //   Errors  ResourceExhausted: not enough memory.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* slab, std::size_t bytes);  // `bytes` as it was taken

  // How many chunks more would be good to have, as fast as they are being used: 0 as long as few
  // are. Give them, with their pages taken, to add().
  std::size_t wants_chunks() const;
  // A chunk of kChunkBytes, which goes with the others.
  void add(Arena chunk);

 private:
  std::size_t limit_ = SIZE_MAX;
  std::size_t taken_ = 0;
  std::vector<Arena> chunks_;
  std::vector<std::byte*> free_;                 // slabs of the chunks
  std::unordered_map<std::byte*, Arena> large_;  // slabs that are more than kSlabBytes
};

}  // namespace cairn::ps
