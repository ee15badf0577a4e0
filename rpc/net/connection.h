// Connection: one established RPC connection of one reactor.
#pragma once
#include <capnp/capability.h>
#include <capnp/orphan.h>
#include <kj/async.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/incarnation.h"
#include "rpc/loop/gate.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/attachment.h"
#include "rpc/net/byte_stream.h"
#include "rpc/net/hello.h"

namespace cairn::rpc {

class SharedMemory;

// Both sides of a cluster use the same: a receiver with a smaller limit than the sender's loses the
// whole connection.
struct ConnectionOptions {
  // a larger message fails its call with ResourceExhausted
  std::size_t message_bytes_max = std::size_t{64} << 20;
  // bytes under way, each way, that credit() allows
  std::size_t credit_bytes = std::size_t{32} << 20;
  // of answers that the other side does not take
  std::size_t unread_bytes_max = std::size_t{1} << 30;
  // dialler's side: memory to share where the other side is a process of this host; 0: none
  std::size_t shared_bytes = 0;
  std::size_t shared_bytes_max = std::size_t{1} << 30;  // acceptor's side: what a dialler may bring
  StreamOptions stream;
};

// The other side, as its hello describes it.
struct PeerInfo {
  Role role = Role::kTool;
  std::uint32_t task = 0;
  ProcessIncarnation incarnation;
  std::uint64_t session = 0;
  Term term;                             // acceptor's side only: of a coordinator
  std::uint32_t endpoint = 0;            // the acceptor's endpoint that this connection is for
  std::uint32_t endpoints = 0;           // dialler's side only: how many the acceptor has
  std::string address;                   // as the transport calls it, for logs
  std::shared_ptr<SharedMemory> shared;  // that the dialler brought and both sides use; null: none
  std::string name() const { return task_name(role, task); }
};

struct Traffic {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

// Bytes that a call may have under way; plain RPC calls have no back-pressure.
using Credit = Gate::Pass;
enum class Way : std::uint8_t { kOut, kIn };  // a connection has a gate for each

enum class Side : std::uint8_t { kDialler, kAcceptor };

// Calls pending when it ends fail with UnavailableError, as do later ones: capabilities do not
// heal, connect again.
//   Thread  its reactor's. Not to be destroyed from inside a call of its own: close() is safe
//           anywhere on the thread.
class Connection {
 public:
  // RPC starts at once. `self` is the task name that errors raised here carry to the other side.
  Connection(Reactor& reactor, kj::Own<ByteStream> stream, Side side, PeerInfo peer,
             std::string self, const ConnectionOptions& options);
  ~Connection();

  // The capability that the other side serves on this connection.
  template <typename T>
  typename T::Client bootstrap() {
    return bootstrap_any().castAs<T>();
  }
  capnp::Capability::Client bootstrap_any();
  // Serves `bootstrap` to the other side; call it once, before the loop runs again.
  void serve(capnp::Capability::Client bootstrap);

  // Wraps the result of a server method: `return connection.guard(pull(context));`. A call still
  // under way when the connection goes is dropped at the wait it is in; without guard() it would
  // run on, in a room that its owner may have left.
  kj::Promise<void> guard(Task<void> call);

  // For a server method, before it makes a large answer. A peer that asks on and on without reading
  // is none of ours: its connection is closed. `kept`: bytes of answers that the caller holds back
  // for it.
  //   Errors  ResourceExhausted: above unread_bytes_max.
  void verify_reading(std::size_t kept = 0);

  // For a server method, `call`: returns if the peer's hello named one of these roles.
  //   Errors  PermissionDenied: another role, named.
  void allow(std::initializer_list<Role> roles, std::string_view call) const;
  // For a server method that belongs to a session: a coordinator that this one has replaced, or one
  // to come, may not make it.
  //   Errors  PermissionDenied: not the coordinator; FailedPrecondition: of another session, both
  //           named.
  void allow_coordinator(std::string_view call, std::uint64_t session) const;

  const PeerInfo& peer() const { return peer_; }
  Reactor& reactor() { return reactor_; }
  bool connected() const;
  // Resolves, never fails, when the connection has ended on either side.
  kj::Promise<void> on_disconnect();
  // Ends it; pending calls fail on the next turns of the loop.
  void close();

  // External data for a message of this connection that is about to go: at the end of a server
  // method, or right before send(), with no wait in between. The attachment is kept until the
  // message has left (and beyond, where the peer reads from our memory), or, if it never leaves
  // because its call was given up, until the loop has nothing else to do.
  //   Errors  ResourceExhausted: above AttachmentKeys::kAttachmentBytesMax.
  capnp::Orphan<capnp::Data> attach(capnp::Orphanage orphanage, Attachment attachment);
  // Waits, first in first out per way, for credit to send a call's bytes or to receive its
  // answer's. Hold it until the reply has come.
  //   Errors  Unavailable: the connection has ended.
  kj::Promise<Credit> acquire_credit(Way way, std::size_t bytes) {
    return (way == Way::kOut ? credit_out_ : credit_in_).enter(bytes);
  }
  BufferPool& buffers() { return reactor_.buffers(); }
  Traffic traffic() const;
  // Bytes of outgoing messages not yet handed to the system.
  std::size_t queued_bytes() const;
  std::size_t message_bytes_max() const { return message_bytes_max_; }

 private:
  struct Rpc;
  Reactor& reactor_;
  PeerInfo peer_;
  std::size_t message_bytes_max_, unread_bytes_max_;
  Gate credit_out_, credit_in_;
  std::unique_ptr<Rpc> rpc_;
};

}  // namespace cairn::rpc
