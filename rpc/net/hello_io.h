// Sends and receives the hello on a plain stream. For this room's .cc files.
#pragma once
#include "rpc/loop/task.h"
#include "rpc/net/byte_stream.h"
#include "rpc/net/hello.h"

namespace cairn::rpc {

// The dialler's part. Errors FailedPrecondition: no Cairn process answered; Unavailable: the stream
// ended. `shared`, if any, goes along: the reply says whether the other side uses it.
Task<HelloReply> greet(ByteStream& stream, Hello hello, std::string where,
                       std::shared_ptr<SharedMemory> shared);

struct ReceivedHello {
  HelloPrefix prefix;
  std::vector<std::uint8_t> rest;  // for decode_hello
};
// The acceptor's part. Errors  InvalidArgument: no hello; Unavailable: the stream ended.
Task<ReceivedHello> receive_hello(ByteStream& stream);
Task<void> send_reply(ByteStream& stream, HelloReply reply);

}  // namespace cairn::rpc
