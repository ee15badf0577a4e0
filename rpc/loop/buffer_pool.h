// Page-aligned buffers that are reused, so that bulk messages pay no page faults; one pool a
// reactor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "rpc/loop/memory_use.h"

namespace cairn::rpc {

class BufferPool {
 public:
  // Readable and writable up to the next power of two from 64 KiB; goes back to the pool with its
  // last owner.
  using Buffer = std::shared_ptr<std::uint8_t>;

  // Keeps at most `keep_bytes` of unused memory. Buffers may outlive the pool.
  explicit BufferPool(std::size_t keep_bytes = std::size_t{512} << 20);

  // Calls `registers` with memory that is allocated from now on. The object it returns goes when
  // that memory is freed, with the last buffer at the latest.   Thread  as take().
  void register_with(RegisterMemory registers);
  bool registers() const;  // whether there is such a function

  // At least `bytes` bytes of unspecified content, aligned to 4 KiB. Thread: the reactor's, as is
  // dropping the buffer.
  Buffer take(std::size_t bytes);
  // The buffer in use that these bytes fill at least by half; null: none. To keep it therefore
  // takes at most twice the bytes.
  Buffer buffer_of(const void* data, std::size_t bytes) const;
  std::size_t unused_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::rpc
