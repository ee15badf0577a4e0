// Staging: pinned memory through which a queue's copies between the host and the device go, but for
// those of memory that is pinned where it lies (host_ranges.h).
//
// Only copies from and to pinned memory run beside other work without holding the host up.
// The ring is made of blocks: it grows while the oldest block is still under way, up to a bound,
// and a block is used again once an event says that the copies of it have run.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

class Staging {
 public:
  // A large copy goes in pieces of a block, so that one piece travels while the next is copied to
  // pinned memory or from it. A queue pins no more than 32 MiB.
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  static constexpr std::size_t kBlocksMax = 32;

  explicit Staging(Driver& driver) : driver_(driver) {}
  // All copies have run, or the device has failed.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Enqueues a copy to the device. When it returns, what `from` names may change.
  //   Cost  one copy within the host's memory. Waits if all blocks are under way.
  void send(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes);

  // Enqueues a copy to the host's memory. `to` has the bytes after deliver(), and parts of it may
  // have them before; it must stay until then, or until drop().
  //   Cost  as send().
  void fetch(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes);
  // All streams that were given have been waited for: hands out what was fetched, and has all
  // blocks free.
  void deliver();
  // Forgets the fetches that were not handed out yet.
  void drop() noexcept;

 private:
  struct Arrival {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  struct Block {
    std::byte* memory = nullptr;
    Event ran = nullptr;  // recorded behind the block's last copy, once it is full
    Stream stream = nullptr;
    std::size_t used = 0;
    bool under_way = false;  // full, and not known to have run
    std::vector<Arrival> arrivals;
  };
  // Room for a piece of a copy: no more than `wanted` bytes.
  struct Place {
    Block& block;
    std::byte* at;
    std::size_t bytes;
  };
  Place take(Stream stream, std::size_t wanted);
  void close(Block& block);
  Block& next();
  static void free(Block& block);

  Driver& driver_;
  // In the order of their use: behind the current one comes the one that was used longest ago.
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
};

}  // namespace cairn::cuda
