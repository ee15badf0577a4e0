// The memory that the transport of this process holds. Thread: any.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace cairn::rpc {

// Called with memory that a pool is about to hand out for the first time, in whole pages. The pool
// keeps the object it returns for as long as the pool has that memory.
//   Thread  the pool's.
using RegisterMemory = std::function<std::shared_ptr<void>(std::byte* begin, std::size_t bytes)>;

std::size_t buffer_bytes();  // of all BufferPools: in use, or kept to be used again
// All that SharedPools have handed out at some time: those pages stay until their connections go.
std::size_t shared_bytes();

}  // namespace cairn::rpc
