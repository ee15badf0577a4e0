#include "rpc/loop/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "rpc/loop/memory_use.h"

namespace cairn::rpc {
namespace {
constexpr std::size_t kSmallest = 64 << 10;
constexpr std::size_t kHugePage = 2 << 20;
constexpr std::size_t kPage = 4096;

std::atomic<std::size_t> bytes_of_all{0};

// Fresh memory costs a page fault per page, and a huge page takes one for 512 small ones. Only
// memory that begins on a huge page can have them throughout, hence the alignment.
std::uint8_t* allocate(std::size_t size) {
  auto* memory =
      static_cast<std::uint8_t*>(std::aligned_alloc(size >= kHugePage ? kHugePage : kPage, size));
  if (memory == nullptr) throw std::bad_alloc();
  if (size >= kHugePage) madvise(memory, size, MADV_HUGEPAGE);
  bytes_of_all.fetch_add(size, std::memory_order_relaxed);
  return memory;
}

void deallocate(std::uint8_t* memory, std::size_t size) {
  std::free(memory);
  bytes_of_all.fetch_sub(size, std::memory_order_relaxed);
}
}  // namespace

std::size_t buffer_bytes() { return bytes_of_all.load(std::memory_order_relaxed); }

// The deleters of the buffers share it, so that a buffer may outlive its pool.
struct BufferPool::State {
  struct Memory {
    std::uint8_t* data = nullptr;
    std::shared_ptr<void> registered;
  };
  ~State() {
    for (auto& [size, buffers] : unused)
      for (Memory& memory : buffers) free(memory, size);
  }
  static void free(Memory& memory, std::size_t size) {
    memory.registered = nullptr;
    deallocate(memory.data, size);
  }
  Memory make(std::size_t size) const {
    Memory made{allocate(size), nullptr};
    if (registers) made.registered = registers(reinterpret_cast<std::byte*>(made.data), size);
    return made;
  }

  RegisterMemory registers;
  std::size_t keep_bytes = 0;
  struct Used {
    std::uint8_t* data;
    std::size_t size;
    std::weak_ptr<std::uint8_t> buffer;
  };
  std::size_t unused_bytes = 0;
  std::vector<Used> used;                             // few
  std::map<std::size_t, std::vector<Memory>> unused;  // by size class, powers of two
};

BufferPool::BufferPool(std::size_t keep_bytes) : state_(std::make_shared<State>()) {
  state_->keep_bytes = keep_bytes;
}

std::size_t BufferPool::unused_bytes() const { return state_->unused_bytes; }

void BufferPool::register_with(RegisterMemory registers) {
  state_->registers = std::move(registers);
}
bool BufferPool::registers() const { return static_cast<bool>(state_->registers); }

BufferPool::Buffer BufferPool::take(std::size_t bytes) {
  auto size = std::bit_ceil(std::max(bytes, kSmallest));
  auto& unused = state_->unused[size];
  State::Memory memory;
  if (!unused.empty()) {
    memory = std::move(unused.back());
    unused.pop_back();
    state_->unused_bytes -= size;
  } else {
    memory = state_->make(size);
  }
  std::uint8_t* const data = memory.data;
  // The order of `used` means nothing, so the last entry fills the gap.
  Buffer taken(data, [state = state_, size,
                      memory = std::move(memory)](std::uint8_t* buffer) mutable {
    const auto at = std::find_if(state->used.begin(), state->used.end(),
                                 [buffer](const State::Used& used) { return used.data == buffer; });
    *at = std::move(state->used.back());
    state->used.pop_back();
    if (state->unused_bytes + size > state->keep_bytes) return State::free(memory, size);
    state->unused[size].push_back(std::move(memory));
    state->unused_bytes += size;
  });
  state_->used.push_back({data, size, taken});
  return taken;
}

BufferPool::Buffer BufferPool::buffer_of(const void* data, std::size_t bytes) const {
  const auto* at = static_cast<const std::uint8_t*>(data);
  for (const State::Used& used : state_->used)
    if (std::less_equal<>()(used.data, at) && std::less<>()(at, used.data + used.size))
      return 2 * bytes >= used.size ? used.buffer.lock() : nullptr;
  return nullptr;
}

}  // namespace cairn::rpc
