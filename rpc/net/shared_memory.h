// Memory that two processes of one host see: bulk goes there, and messages only say where it lies.
//
// The dialler of a Unix connection makes it and hands its descriptor over with the hello; from then
// on the dialler alone decides what lies where, and the acceptor reads and writes at the places
// that calls name. What the acceptor reads may change under its hands: whatever it verifies it must
// copy first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rpc/loop/memory_use.h"

namespace cairn::rpc {

// A mapped memfd of fixed size, whose pages exist when touched. Sealed against shrinking, so that
// neither side can make the other fault.
//   Thread  any; what lies inside is for the two ends to agree on.
class SharedMemory {
 public:
  // Null where the system has none to give.
  static std::shared_ptr<SharedMemory> create(std::size_t bytes);
  // Adopts memory that a peer handed over; closes `descriptor`. Null unless the memory is sealed,
  // of ordinary pages and at most `bytes_max` large.
  static std::shared_ptr<SharedMemory> adopt(int descriptor, std::size_t bytes_max);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  // The `size` bytes at `offset`.
  // Errors  InvalidArgument: they do not lie inside, or `offset` is no multiple of 8.
  std::span<std::byte> at(std::uint64_t offset, std::uint64_t size) const;
  // The offset of memory that lies inside; nothing for any other.
  std::optional<std::uint64_t> offset_of(const void* data, std::size_t size) const;

 private:
  SharedMemory(int descriptor, std::byte* data, std::size_t bytes)
      : descriptor_(descriptor), data_(data), bytes_(bytes) {}
  static std::shared_ptr<SharedMemory> map(int descriptor, std::size_t bytes);
  int descriptor_;
  std::byte* data_;
  std::size_t bytes_;
};

// Buffers out of shared memory, reused. Thread: one, as is dropping a buffer; buffers may outlive
// the pool.
class SharedPool {
 public:
  // Calls `registers`, unless it is empty, with each buffer when that is first handed out, since
  // the memory as a whole is more than is ever used.
  explicit SharedPool(std::shared_ptr<SharedMemory> memory, RegisterMemory registers = {});
  // At least `bytes` bytes, aligned to 4 KiB; null when there is no room.
  std::shared_ptr<std::uint8_t> take(std::size_t bytes);
  const SharedMemory& memory() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::rpc
