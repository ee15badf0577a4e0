// A buffer aligned as O_DIRECT requires for reads and writes.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace cairn::storage {

inline constexpr std::size_t kDirectAlignment = 4096;

// `bytes` of memory, rounded up to whole multiples of kDirectAlignment, not initialised.
struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte[], FreeAligned>;
inline AlignedBuffer make_aligned_buffer(std::size_t bytes) {
  const std::size_t whole = (bytes + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
  void* memory = std::aligned_alloc(kDirectAlignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBuffer(static_cast<std::byte*>(memory));
}

}  // namespace cairn::storage
