// Bytes: memory with an owner, ready to be referred to by a message.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>

#include "core/tensor/tensor.h"
#include "rpc/loop/buffer_pool.h"

namespace cairn::worker {

// 8-byte aligned, and readable up to the next multiple of 8. Unchanged while an owner lives.
struct Bytes {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

// Memory from the reactor's pool, to be filled. Thread: the reactor's, as is dropping it.
inline Bytes pooled_bytes(rpc::BufferPool& pool, std::size_t size) {
  auto buffer = pool.take(size == 0 ? 1 : size);
  auto* data = reinterpret_cast<std::byte*>(buffer.get());
  return {std::move(buffer), data, size};
}

// A tensor to be filled. Small ones come from the allocator: the pool's smallest buffer is 64 KiB.
inline Tensor pooled_tensor(rpc::BufferPool& pool, DType dtype, const Shape& shape) {
  constexpr std::size_t kSmall = 16 << 10;
  const std::size_t size = static_cast<std::size_t>(shape.elements()) * dtype_bytes(dtype);
  if (size < kSmall) return Tensor(dtype, shape);
  auto bytes = pooled_bytes(pool, size);
  return Tensor::borrowed(dtype, shape, bytes.data, std::move(bytes.owner));
}

}  // namespace cairn::worker
