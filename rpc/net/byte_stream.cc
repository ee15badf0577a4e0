#include "rpc/net/byte_stream.h"

#include "core/base/error.h"

namespace cairn::rpc {

// For streams that copy: KJ lets go of the bytes when the write resolves, so the owners are kept
// until then and no longer.
kj::Promise<void> ByteStream::write(std::vector<Piece> pieces) {
  auto bytes = kj::heapArray<kj::ArrayPtr<const kj::byte>>(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    bytes[i] = kj::arrayPtr(pieces[i].begin(), pieces[i].bytes.size());
  auto written = write(bytes.asPtr());
  return written.attach(kj::mv(bytes), std::move(pieces));
}

void ByteStream::share(const std::shared_ptr<SharedMemory>&, std::span<const std::uint8_t>) {
  throw InternalError("memory is shared over a stream that cannot");
}

}  // namespace cairn::rpc
