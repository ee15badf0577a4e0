#include "rpc/net/hello_io.h"

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

// Not a byte more than the hello: what follows it is RPC, which another stream object reads,
// perhaps on another thread.
Task<void> read_exactly(ByteStream& stream, std::span<std::uint8_t> to) {
  if (to.empty()) co_return;
  auto bytes = co_await stream.tryRead(to.data(), to.size(), to.size());
  if (bytes < to.size()) throw UnavailableError("the stream ended in the middle of the hello");
}

Task<ReceivedHello> receive(ByteStream& stream) {
  std::array<std::uint8_t, kHelloPrefixBytes> prefix;
  co_await read_exactly(stream, prefix);
  ReceivedHello received;
  received.prefix = decode_prefix(prefix);
  received.rest.resize(received.prefix.rest);
  co_await read_exactly(stream, received.rest);
  co_return received;
}

}  // namespace

Task<HelloReply> greet(ByteStream& stream, Hello hello, std::string where,
                       std::shared_ptr<SharedMemory> shared) {
  auto bytes = encode(hello);
  if (shared != nullptr)
    // The descriptor travels with these bytes, so they go in one call of their own.
    stream.share(shared, bytes);
  else
    co_await stream.write(bytes.data(), bytes.size());
  std::string wrong;
  try {
    auto received = co_await receive(stream);
    co_return decode_reply(received.prefix.version, received.rest);
  } catch (const InvalidArgumentError& error) {
    wrong = error.what();
  }
  throw FailedPreconditionError(
      str("what answers at ", where, " is no Cairn process of this version: ", wrong));
}

Task<ReceivedHello> receive_hello(ByteStream& stream) { return receive(stream); }

Task<void> send_reply(ByteStream& stream, HelloReply reply) {
  auto bytes = encode(reply);
  co_await stream.write(bytes.data(), bytes.size());
}

}  // namespace cairn::rpc
