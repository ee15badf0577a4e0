#include "collective/network/peer_links.h"

#include <algorithm>

#include "collective/network/peer_links_impl.h"
#include "rpc/loop/error_wire.h"
#include "rpc/server/heartbeat.h"

namespace cairn {
namespace {

using rpc::Task;

// Below it a copy into the message is cheaper than an attachment.
constexpr std::size_t kCopiedBytesMax = 4096;

}  // namespace

// ---- what others ask of this one ----

capnp::Capability::Client PeerLinks::Impl::serve(const rpc::PeerInfo& info,
                                                 rpc::Connection& connection) {
  const int from = rank_of(info.role, info.task);
  if (from < 0 || from == options.rank || info.session != options.group)
    return rpc::to_kj(Code::kUnavailable,
                      str(info.name(), " is none of the other members of this group, which has ",
                          size(), " and the number ", options.group));
  // A group with a number is not formed again.
  if (error && options.group != 0) return rpc::to_kj(Code::kAborted, error->message, error->task);
  // A member that was started again finds the earlier group still here: it waits in its own
  // forming until this one has ended and a new one listens.
  if (generation == 0 && !error) accepted(from, connection);
  return serve_peer(door, from, connection);
}

// The last connection counts: a member that was started again while the group forms dials anew, and
// its earlier connection may be seen to end only later.
void PeerLinks::Impl::accepted(int from, rpc::Connection& connection) {
  peer(from).in = &connection;
  changed.notify_all();
  auto ended = [this, from, number = ++peer(from).accepted] {
    if (peer(from).accepted != number) return;
    peer(from).in = nullptr;
    if (generation != 0) lost(from, "its connection ended");
  };
  tasks.spawn(str("hearing ", name(from)), connection.on_disconnect().then(kj::mv(ended)));
}

// Before it is known to have ended, where its owner ends it.
void PeerLinks::Impl::closed(int from, rpc::Connection& connection) {
  if (peer(from).in == &connection) peer(from).in = nullptr;
}

// Rank 0's announcement: these processes, by their incarnations, are the group. It is answered when
// this member is connected with every one of them, and so means that the group stands.
Task<void> PeerLinks::Impl::join(std::uint64_t asked_generation, std::uint64_t asked_agreed,
                                 std::vector<ProcessIncarnation> incarnations) {
  if (asked_agreed != agreed || incarnations.size() != peers.size()) {
    fail({Code::kFailedPrecondition,
          str(name(options.rank), " and ", name(0),
              " were given different members or communication options: they must be the same"),
          member(options.rank).task()});
    throw_error(*error);
  }
  if (options.group != 0 && asked_generation != options.group)
    throw FailedPreconditionError(str(name(0), " announces group ", asked_generation, ", and ",
                                      name(options.rank), " is to be in group ", options.group));
  if (incarnations[static_cast<std::size_t>(options.rank)].number != options.incarnation)
    throw UnavailableError(str(name(options.rank), " was started again while the group formed"));
  while (!all(incarnations)) co_await changed.wait();
  if (error) throw_error(*error);
  if (generation != 0)
    throw FailedPreconditionError(str(name(options.rank), " is in a group already"));
  begin(asked_generation);
}

// Rank 0 may have begun, and send, before its word that the group stands has come here.
Task<void> PeerLinks::Impl::deliver(int from, rpc::Connection& connection,
                                    std::uint64_t of_generation, Parcel parcel) {
  while (generation == 0 && !error) co_await changed.wait();
  if (error) throw_error(*error);
  if (of_generation != generation || peer(from).in != &connection)
    throw FailedPreconditionError(
        str(name(from), " sends what belongs to another generation of the group"));
  peer(from).calls = std::max(peer(from).calls, parcel.call + 1);
  co_await events.parcel(from, std::move(parcel));
}

void PeerLinks::Impl::told(int from, rpc::Connection& connection, ErrorParts parts, bool left) {
  if (peer(from).in != &connection) return;
  // A group with a number is formed once, and not without this one.
  if (generation == 0 && options.group != 0) return fail(std::move(parts));
  if (!left) {
    // A member that could not form its group will try again, and this one waits for that.
    const bool may_heal = parts.code == Code::kUnavailable || parts.code == Code::kDeadlineExceeded;
    if (generation != 0 || !may_heal) fail(std::move(parts));
    return;
  }
  peer(from).gone = parts;
  events.left(from, parts);
}

// ---- the end ----

Task<void> PeerLinks::Impl::watch_silence(int rank) {
  const auto ping = [this, rank] {
    return client(rank).pingRequest().send().then([this, rank](auto&& reply) {
      peer(rank).calls = std::max(peer(rank).calls, reply.getCalls());
    });
  };
  rpc::HeartbeatOptions heartbeat{options.heartbeat_interval, options.heartbeats_missed_max};
  const rpc::Silence silence = co_await rpc::watch_heartbeat(reactor, name(rank), ping, heartbeat);
  // The end of a connection is judged where it is watched.
  if (peer(rank).connected()) lost(rank, silence.reason);
}

void PeerLinks::Impl::lost(int rank, const std::string& why) {
  if (peer(rank).gone) return;
  fail({Code::kUnavailable,
        str(name(rank), " was lost: ", why, "; the group has ended, form a new one"),
        member(rank).task()});
}

// Every member that hears of the end passes it on, once: so it also reaches members that have no
// way to the first one.
void PeerLinks::Impl::fail(ErrorParts parts) {
  if (error) return;
  error = parts;
  failing->reject(rpc::to_kj(parts));
  changed.notify_all();
  telling = tell_all(std::move(parts), false).start().fork();
  tasks.spawn("telling the others of the end", telling.addBranch());
}

kj::Promise<void> PeerLinks::Impl::tell(int to, const ErrorParts& parts, bool left) {
  auto request = client(to).abortRequest();
  const kj::Exception sent = rpc::to_kj(parts);
  request.setError(sent.getDescription());
  request.setLeft(left);
  return request.send().ignoreResult().catch_([](kj::Exception&&) {});
}

Task<void> PeerLinks::Impl::tell_all(ErrorParts parts, bool left) {
  kj::Vector<kj::Promise<void>> told;
  for (int to = 0; to < size(); ++to)
    if (to != options.rank && peer(to).out != nullptr && peer(to).out->connected())
      told.add(tell(to, parts, left));
  co_await kj::joinPromises(told.releaseAsArray()).exclusiveJoin(reactor.sleep(kFarewell));
}

std::string PeerLinks::Impl::name(int rank) const {
  return str("rank ", rank, " (", member(rank).task(), " at ", member(rank).address, ")");
}

// ---- PeerLinks ----

PeerLinks::PeerLinks(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions options,
                     Events events)
    : impl_(std::make_unique<Impl>(reactor, network, std::move(options), std::move(events))) {}
PeerLinks::~PeerLinks() = default;

int PeerLinks::rank() const { return impl_->options.rank; }
int PeerLinks::size() const { return impl_->size(); }
rpc::Reactor& PeerLinks::reactor() { return impl_->reactor; }
std::string PeerLinks::task() const { return impl_->member(rank()).task(); }
std::string PeerLinks::name(int rank) const { return impl_->name(rank); }
std::uint64_t PeerLinks::calls_of(int rank) const { return impl_->peer(rank).calls; }
void PeerLinks::set_own_calls(std::uint64_t calls) { impl_->calls = calls; }
void PeerLinks::fail(ErrorParts error) { impl_->fail(std::move(error)); }
const std::optional<ErrorParts>& PeerLinks::error() const { return impl_->error; }
kj::Promise<void> PeerLinks::failure() { return impl_->failed.addBranch(); }
const std::optional<ErrorParts>& PeerLinks::gone(int rank) const { return impl_->peer(rank).gone; }

capnp::Capability::Client PeerLinks::serve(const rpc::PeerInfo& peer, rpc::Connection& connection) {
  return impl_->serve(peer, connection);
}

kj::Promise<void> PeerLinks::form() {
  impl_->tasks.spawn("waiting for members", impl_->log_missing());
  return impl_->form_in_time().start();
}

kj::Promise<void> PeerLinks::Impl::put(int to, const Parcel& parcel,
                                       std::vector<rpc::ByteStream::Piece> pieces) {
  rpc::Connection& connection = *peer(to).out;
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.bytes.size();
  auto request =
      client(to).putRequest(capnp::MessageSize{(bytes <= kCopiedBytesMax ? bytes / 8 : 0) + 64, 0});
  auto out = request.initParcel();
  write_parcel(out, generation, parcel);
  if (bytes > kCopiedBytesMax) {
    out.adoptData(connection.attach(capnp::Orphanage::getForMessageContaining(out),
                                    rpc::Attachment(std::move(pieces))));
  } else if (bytes > 0) {
    kj::byte* to_byte = out.initData(static_cast<unsigned>(bytes)).begin();
    for (const auto& piece : pieces)
      to_byte = std::copy(piece.bytes.begin(), piece.bytes.end(), to_byte);
  }
  return request.send().ignoreResult();
}

kj::Promise<void> PeerLinks::send(int to, const Parcel& parcel,
                                  std::vector<rpc::ByteStream::Piece> pieces) {
  // A lost connection is judged where it is watched, so that the error names the right member.
  auto unless_lost = [this, to](kj::Exception&& error) -> kj::Promise<void> {
    if (rpc::from_kj(error).code != Code::kUnavailable) return kj::mv(error);
    if (impl_->peer(to).gone) impl_->fail(*impl_->peer(to).gone);
    return kj::NEVER_DONE;
  };
  return impl_->put(to, parcel, std::move(pieces)).catch_(kj::mv(unless_lost));
}

kj::Promise<void> PeerLinks::tell(int to, const Parcel& parcel) {
  return impl_->put(to, parcel, {}).catch_([](kj::Exception&& error) -> kj::Promise<void> {
    if (rpc::from_kj(error).code != Code::kUnavailable) return kj::mv(error);
    return kj::READY_NOW;
  });
}

kj::Promise<void> PeerLinks::ask_calls() {
  kj::Vector<kj::Promise<void>> asked;
  for (int to = 0; to < size(); ++to) {
    if (to == rank() || !impl_->peer(to).connected()) continue;
    auto learn = [this, to](auto&& reply) {
      impl_->peer(to).calls = std::max(impl_->peer(to).calls, reply.getCalls());
    };
    asked.add(
        impl_->client(to).pingRequest().send().then(kj::mv(learn)).catch_([](kj::Exception&&) {}));
  }
  return kj::joinPromises(asked.releaseAsArray()).exclusiveJoin(impl_->reactor.sleep(kFarewell));
}

kj::Promise<void> PeerLinks::leave() {
  if (impl_->error) return impl_->telling.addBranch();
  const ErrorParts parts{Code::kUnavailable, str(name(rank()), " has left the group"),
                         impl_->member(rank()).task()};
  return impl_->tell_all(parts, true).start();
}

}  // namespace cairn
