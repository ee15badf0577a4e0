#include "rpc/byte_stream.h"

#include "core/error.h"

namespace cairn::rpc {

void ByteStream::share(const std::shared_ptr<SharedMemory>&, std::span<const std::uint8_t>) { throw InternalError("memory is shared over a stream that cannot"); }

}  // namespace cairn::rpc
