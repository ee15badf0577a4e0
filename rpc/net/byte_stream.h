// Connected byte streams below RPC. A Socket belongs to no loop and may change threads; attach()
// makes it a ByteStream of one reactor, detach() a Socket again.
#pragma once
#include <kj/async-io.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/memory/loan.h"

namespace cairn::rpc {

class Reactor;
class SharedMemory;
class Socket;

struct StreamOptions {
  // one readv takes a small message whole; 0: never read past what was asked for
  std::size_t read_ahead = 64 << 10;
  // writes up to this size are batched until the loop is idle; 0: off
  std::size_t cork = 8 << 10;
  // corked bytes that go out at once: two busy ends overlap instead of taking turns
  std::size_t batch = 2 << 10;
  std::size_t high_water = 256 << 10;  // corked bytes above which write() waits
  std::size_t read_turn = 1 << 20;     // bytes read without a look at what else the loop has to do
  // of memory that the other side may hand over while this reads
  std::size_t shared_bytes_max = 0;
};
inline constexpr StreamOptions kPlainStream{0, 0, 0, 0, 0, 0};  // for the hello

class ByteStream : public kj::AsyncIoStream {
 public:
  // Bytes to write. Those without an owner are the caller's until the write resolves. Those with an
  // owner must not change until the peer has read them, possibly later; the owner keeps them.
  struct Piece {
    kj::ArrayPtr<const kj::byte> bytes;
    std::shared_ptr<void> owner;
    Loan* loan = nullptr;  // the owner's: the bytes are the last ones of it, wherever it has them
    const kj::byte* begin() const {
      return loan == nullptr ? bytes.begin()
                             : reinterpret_cast<const kj::byte*>(
                                   loan->bytes().data() + loan->bytes().size() - bytes.size());
    }
  };
  using AsyncIoStream::write;
  virtual kj::Promise<void> write(std::vector<Piece> pieces);
  // Takes what is there without a wait, at most `bytes`: 0 if nothing is, or no more will come.
  virtual std::size_t read_now(void*, std::size_t) { return 0; }
  virtual std::uint64_t bytes_in() const = 0;
  virtual std::uint64_t bytes_out() const = 0;
  // Ends both directions now: pending and later reads and writes fail as disconnected. What was
  // corked may be lost.
  virtual void abort() = 0;
  // Between processes of one host: sends `bytes`, few and the first of all, and the memory with
  // them.
  virtual bool can_share() const { return false; }
  virtual void share(const std::shared_ptr<SharedMemory>& memory,
                     std::span<const std::uint8_t> bytes);
  // The memory that came with the bytes read so far; null: none, or none that is safe to use.
  virtual std::shared_ptr<SharedMemory> take_shared() { return nullptr; }
  // Gives the socket up, with no operation pending and nothing read ahead. The stream is dead
  // afterwards.
  virtual std::unique_ptr<Socket> detach() = 0;
};

class Socket {
 public:
  virtual ~Socket() = default;
  // On `reactor`'s thread. The socket object is empty afterwards.
  virtual kj::Own<ByteStream> attach(Reactor& reactor, const StreamOptions& options) = 0;
  // The other side as this transport calls it, for logs: "tcp://10.0.0.7:51234".
  virtual std::string peer_address() const = 0;
};

}  // namespace cairn::rpc
