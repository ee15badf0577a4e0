#include "rpc/net/connection.h"

#include <capnp/rpc-twoparty.h>
#include <capnp/rpc.h>

#include <algorithm>

#include "core/base/error.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/message_stream.h"

namespace cairn::rpc {
namespace {

namespace twoparty = capnp::rpc::twoparty;

// Also the largest message to send: both come from one number, so that the sender refuses before
// the receiver breaks.
capnp::ReaderOptions limits(const ConnectionOptions& options) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = options.message_bytes_max / sizeof(capnp::word);
  return limits;
}

// Serves whatever the owner hands over after construction.
class LateBootstrap final : public capnp::BootstrapFactory<twoparty::VatId> {
 public:
  capnp::Capability::Client createFor(twoparty::VatId::Reader) override {
    KJ_IF_MAYBE (client, served) return *client;
    return capnp::Capability::Client(
        to_kj(Code::kUnimplemented, "nothing is served on this side of the connection"));
  }
  kj::Maybe<capnp::Capability::Client> served;
};

std::string ended(const PeerInfo& peer) {
  return str("the connection to ", peer.name(), " (", peer.address, ") has ended");
}

}  // namespace

// The order of the members is that of the layers, because they are destroyed in reverse: first what
// waits for this connection's promises and the calls under way, then RPC, the messages and the
// stream that it uses.
struct Connection::Rpc {
  Rpc(kj::Own<ByteStream> own_stream, Side side, std::string self, BufferPool& pool,
      const ConnectionOptions& options)
      : stream(kj::mv(own_stream)),
        messages(*stream, pool, options.message_bytes_max),
        network(messages, side == Side::kAcceptor ? twoparty::Side::SERVER : twoparty::Side::CLIENT,
                limits(options)),
        system(capnp::makeRpcServer(network, bootstrap)) {
    messages.on_unclaimed([this] { drop_attachments_of_nobody(); });
    // The library sends this text along with each exception. We use it to tell which task raised an
    // error where the error itself does not say (from_kj() reads it).
    system.setTraceEncoder([self = std::move(self)](const kj::Exception&) {
      return kj::heapString(self.data(), self.size());
    });
  }

  // An answer whose call was given up never leaves, and no message would claim its attachment.
  // Attachments go to the network in the turn of the loop that makes them, so two cases are left at
  // its end. If the network has nothing to send, no message will claim what is left. If it has, a
  // message is being written, and then this looks again.
  void drop_attachments_of_nobody() {
    if (dropping || !messages.has_attachments()) return;
    dropping = true;
    auto drop = [this] {
      dropping = false;
      if (network.getCurrentQueueSize() == 0) messages.drop_attachments();
    };
    drops = kj::evalLast(kj::mv(drop)).eagerlyEvaluate(nullptr);
  }

  kj::Own<ByteStream> stream;
  PooledMessageStream messages;
  capnp::TwoPartyVatNetwork network;
  LateBootstrap bootstrap;
  capnp::RpcSystem<twoparty::VatId> system;
  kj::Maybe<capnp::Capability::Client> remote;
  kj::Canceler calls;
  bool connected = true, dropping = false;
  kj::ForkedPromise<void> ended = nullptr;
  kj::Promise<void> watch = kj::READY_NOW, drops = kj::READY_NOW;
};

Connection::Connection(Reactor& reactor, kj::Own<ByteStream> stream, Side side, PeerInfo peer,
                       std::string self, const ConnectionOptions& options)
    : reactor_(reactor),
      peer_(std::move(peer)),
      message_bytes_max_(options.message_bytes_max),
      unread_bytes_max_(options.unread_bytes_max),
      credit_out_(options.credit_bytes, ended(peer_)),
      credit_in_(options.credit_bytes, ended(peer_)),
      rpc_(std::make_unique<Rpc>(kj::mv(stream), side, std::move(self), reactor.buffers(),
                                 options)) {
  // A connection that was cut and one that was ended in order are the same to those who wait.
  rpc_->ended = rpc_->network.onDisconnect().catch_([](kj::Exception&&) {}).fork();
  rpc_->watch = rpc_->ended.addBranch()
                    .then([this] {
                      rpc_->connected = false;
                      credit_out_.close();
                      credit_in_.close();
                    })
                    .eagerlyEvaluate(nullptr);
  // Before the first bootstrap the library does not read on the dialler's side, and would not
  // notice the other's end.
  if (side == Side::kDialler) bootstrap_any();
}

Connection::~Connection() {}

kj::Promise<void> Connection::guard(Task<void> call) { return rpc_->calls.wrap(call.start()); }

// Asked for once: the answer belongs to the connection. The VatId names the side that is asked,
// which is the other one.
capnp::Capability::Client Connection::bootstrap_any() {
  KJ_IF_MAYBE (known, rpc_->remote) return *known;
  capnp::MallocMessageBuilder message(8);
  auto vat = message.initRoot<twoparty::VatId>();
  bool dialler = rpc_->network.getSide() == twoparty::Side::CLIENT;
  vat.setSide(dialler ? twoparty::Side::SERVER : twoparty::Side::CLIENT);
  auto client = rpc_->system.bootstrap(vat.asReader());
  rpc_->remote = client;
  return client;
}

void Connection::serve(capnp::Capability::Client bootstrap) {
  rpc_->bootstrap.served = kj::mv(bootstrap);
}

void Connection::verify_reading(std::size_t kept) {
  // Attachments are queued too, unless their answers will never leave: those count as well.
  const std::size_t queued = std::max(queued_bytes(), rpc_->messages.attached_bytes()) + kept;
  if (queued <= unread_bytes_max_) return;
  close();
  throw ResourceExhaustedError(str(peer_.name(), " at ", peer_.address, " leaves ", queued,
                                   " bytes of answers unread, above the bound of ",
                                   unread_bytes_max_, ": its connection is closed"));
}

void Connection::allow(std::initializer_list<Role> roles, std::string_view call) const {
  std::string names;
  for (const Role role : roles) {
    if (peer_.role == role) return;
    names += str(names.empty() ? "" : " or ", role_name(role));
  }
  throw PermissionDeniedError(str(call, " is for the ", names, ": ", peer_.name(), " at ",
                                  peer_.address, " may not call it"));
}

void Connection::allow_coordinator(std::string_view call, std::uint64_t session) const {
  allow({Role::kCoordinator}, call);
  if (peer_.session != session)
    throw FailedPreconditionError(str(call, ": this connection is of session ", peer_.session,
                                      ", the call is about session ", session,
                                      ", which another coordinator may have begun"));
}

bool Connection::connected() const { return rpc_->connected; }

kj::Promise<void> Connection::on_disconnect() { return rpc_->ended.addBranch(); }

// Only the stream ends here. The library notices on its next turns and fails the calls then, which
// is why this is safe inside a call of this very connection.
void Connection::close() { rpc_->stream->abort(); }

capnp::Orphan<capnp::Data> Connection::attach(capnp::Orphanage orphanage, Attachment attachment) {
  const std::size_t bytes = attachment.bytes();
  const void* const key = rpc_->messages.attach(std::move(attachment));
  rpc_->drop_attachments_of_nobody();
  return orphanage.referenceExternalData(
      capnp::Data::Reader(static_cast<const kj::byte*>(key), bytes));
}

Traffic Connection::traffic() const {
  return {rpc_->stream->bytes_in(), rpc_->stream->bytes_out()};
}

std::size_t Connection::queued_bytes() const { return rpc_->network.getCurrentQueueSize(); }

}  // namespace cairn::rpc
