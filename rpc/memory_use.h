// What the transport of this process holds of memory. Thread: any.
#pragma once
#include <cstddef>

namespace cairn::rpc {

std::size_t buffer_bytes();  // of all BufferPools: in use, or kept to be used again
// that SharedPools have handed out at some time: the pages stay until their connections go
std::size_t shared_bytes();

}  // namespace cairn::rpc
