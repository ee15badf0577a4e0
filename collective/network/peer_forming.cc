// How a group comes to be: every member dials all others, again and again, until rank 0, connected
// with all, announces who belongs to it.
#include <algorithm>
#include <random>

#include "collective/network/peer_links_impl.h"
#include "core/base/log.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using rpc::Task;

constexpr Duration kDialDeadline = 5s;
// Members start within moments of each other, and the last one is what all wait for: an attempt
// costs little, so it is not put off further each time.
constexpr Duration kRedial = 50ms;
// For processes that run already: they hear of their group within milliseconds of each other.
constexpr Duration kRedialSoon = 10ms;
constexpr Duration kStillMissing = 10s;  // between two lines of the log that say so

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device() | 1;
}

rpc::Role role_of(const GroupMember& member) {
  for (const auto role : {rpc::Role::kCoordinator, rpc::Role::kWorker, rpc::Role::kPs})
    if (rpc::role_name(role) == member.job) return role;
  throw InvalidArgumentError(
      str("\"", member.job, "\" is no job of a group's members: chief, worker or ps"));
}

// The options that all members must have been given alike, mixed into a number (FNV-1a).
std::uint64_t agreement(const NetworkGroupOptions& options) {
  std::string text = str(options.communication.bytes_per_pack, ' ',
                         static_cast<int>(options.communication.implementation), ' ',
                         options.communication.bfloat16_on_wire);
  for (const GroupMember& member : options.members) text += str(' ', member.task());
  return hash_of(text);
}

}  // namespace

PeerLinks::Impl::Impl(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions given,
                      Events events)
    : reactor(reactor),
      network(network),
      options(std::move(given)),
      events(std::move(events)),
      agreed(agreement(options)),
      peers(options.members.size()) {
  if (options.rank < 0 || options.rank >= size())
    throw InvalidArgumentError(str("rank ", options.rank, " of a group of ", size(), " members"));
  if (options.incarnation == 0) options.incarnation = random_number();
  auto pair = kj::newPromiseAndFulfiller<void>();
  failing = kj::mv(pair.fulfiller);
  failed = pair.promise.fork();
  if (options.listens) listen();
  for (int to = 0; to < size(); ++to)
    if (to != options.rank) tasks.spawn(str("connecting to ", name(to)), keep_dialling(to));
}

// ---- dialling ----

void PeerLinks::Impl::listen() {
  rpc::AcceptorOptions own;
  own.cluster = options.cluster;
  own.role = role_of(member(options.rank));
  own.task = member(options.rank).index;
  own.incarnation = options.incarnation;
  own.token = options.token;
  own.insecure = options.insecure;
  own.admit = [this](const rpc::Hello& hello) -> std::optional<std::string> {
    if (rank_of(hello.role, hello.task) >= 0) return std::nullopt;
    return str("it is none of the ", size(), " members of this group");
  };
  const auto serve_peer = [this](const rpc::PeerInfo& peer, rpc::Connection& connection) {
    return serve(peer, connection);
  };
  acceptor = std::make_unique<rpc::Acceptor>(
      network, rpc::Address::parse(member(options.rank).address), std::move(own),
      std::vector<rpc::Endpoint>{{&reactor, serve_peer}});
}

rpc::Hello PeerLinks::Impl::hello(int to) const {
  rpc::Hello hello;
  hello.cluster = options.cluster;
  hello.session = options.group;
  hello.endpoint = member(to).endpoint;
  hello.role = role_of(member(options.rank));
  hello.task = member(options.rank).index;
  hello.incarnation = options.incarnation;
  hello.token = options.token;
  return hello;
}

int PeerLinks::Impl::rank_of(rpc::Role role, std::uint32_t task) const {
  for (int rank = 0; rank < size(); ++rank)
    if (role_of(member(rank)) == role && member(rank).index == task) return rank;
  return -1;
}

void PeerLinks::Impl::verify_task(int to, const rpc::PeerInfo& peer) const {
  if (rank_of(peer.role, peer.task) == to) return;
  throw FailedPreconditionError(str(name(to), " answers as ", peer.name(),
                                    ": all members must be given the same list of addresses"));
}

// An acceptor that serves more than this group admits any peer that greets it: only an answer shows
// that the member behind it already takes part in this group.
kj::Promise<void> PeerLinks::Impl::admission(int to, rpc::Connection& connection) {
  auto answer = connection.bootstrap<wire::Member>().pingRequest().send().ignoreResult();
  return reactor.with_deadline(kj::mv(answer), kDialDeadline, str("asking ", name(to)));
}

// The reason why there is no connection; empty: there is one.
//   Errors  what no further attempt can mend: another token, cluster or task.
Task<std::string> PeerLinks::Impl::dial(int to) {
  std::optional<ErrorParts> refused;
  std::unique_ptr<rpc::Connection> made;
  try {
    made = co_await network.connect(reactor, rpc::Address::parse(member(to).address), hello(to),
                                    kDialDeadline);
    verify_task(to, made->peer());
    if (!options.listens || options.group != 0) co_await admission(to, *made);
  } catch (const Error&) {
    refused = error_parts(std::current_exception());
  }
  if (refused) {
    drop(std::move(made));
    const bool for_good =
        refused->code != Code::kUnavailable && refused->code != Code::kDeadlineExceeded;
    if (for_good) throw_error(refused->code, refused->message, member(to).task());
    co_return refused->message;
  }
  peer(to).out = std::move(made);
  co_return std::string();
}

// Later: a connection is not destroyed by an event of its own.
void PeerLinks::Impl::drop(std::unique_ptr<rpc::Connection> ended) {
  if (ended) reactor.post([last = std::shared_ptr<rpc::Connection>(std::move(ended))] {});
}

Task<void> PeerLinks::Impl::keep_dialling(int to) {
  const Duration pause = options.listens ? kRedial : kRedialSoon;
  for (;;) {
    std::optional<ErrorParts> for_good;
    try {
      peer(to).trouble = co_await dial(to);
    } catch (const Error&) {
      for_good = error_parts(std::current_exception());
    }
    if (for_good) co_return fail(*for_good);
    if (peer(to).out == nullptr) {
      co_await reactor.sleep(pause);
      continue;
    }
    changed.notify_all();
    co_await peer(to).out->on_disconnect();
    if (generation != 0) {
      co_await reactor.sleep(kGrace);
      co_return lost(to, "its connection ended");
    }
    drop(std::move(peer(to).out));
    peer(to).trouble = "its connection ended";
    co_await reactor.sleep(pause);
  }
}

// ---- forming ----

bool PeerLinks::Impl::all(const std::vector<ProcessIncarnation>& incarnations) const {
  for (int rank = 0; rank < size(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    if (rank != options.rank && !peers[i].is(incarnations[i])) return false;
  }
  return true;
}

std::string PeerLinks::Impl::missing() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& each = peers[static_cast<std::size_t>(rank)];
    if (rank == options.rank || each.connected()) continue;
    const bool half = each.out != nullptr && each.out->connected();
    text += str(text.empty() ? "" : ", ", name(rank), ": ",
                half ? "it has not connected with this one" : each.trouble);
  }
  return text.empty() ? str(name(0), ", which announces the group when it is connected with all")
                      : text;
}

Task<void> PeerLinks::Impl::form_in_time() {
  std::optional<ErrorParts> failure;
  try {
    co_await form().start().exclusiveJoin(too_late().start()).exclusiveJoin(failed.addBranch());
  } catch (const Error&) {
    failure = error_parts(std::current_exception());
  }
  if (!failure) co_return;
  fail(*failure);  // and passes it to the others
  throw_error(*failure);
}

Task<void> PeerLinks::Impl::too_late() {
  co_await reactor.sleep(options.start_timeout);
  throw DeadlineExceededError(str(name(options.rank), " waited ",
                                  std::chrono::duration<double>(options.start_timeout).count(),
                                  " s for ", missing()));
}

Task<void> PeerLinks::Impl::form() {
  if (options.rank == 0) {
    co_await announce();
  } else {
    while (generation == 0) co_await changed.wait();
  }
}

Task<void> PeerLinks::Impl::log_missing() {
  for (;;) {
    co_await reactor.sleep(kStillMissing);
    if (generation != 0 || error) co_return;
    log_info(name(options.rank), " is waiting for ", missing());
  }
}

Task<void> PeerLinks::Impl::announce() {
  const auto complete = [this] {
    for (int rank = 1; rank < size(); ++rank) {
      const Peer& each = peer(rank);
      if (!each.connected() || !each.is(each.out->peer().incarnation)) return false;
    }
    return true;
  };
  while (!complete()) co_await changed.wait();
  kj::Vector<kj::Promise<void>> told;
  for (int to = 1; to < size(); ++to) told.add(announce_to(to));
  // Parcels from members that get word earlier wait until this one is through: see deliver().
  co_await kj::joinPromises(told.releaseAsArray());
  if (!error) begin(generation_to_be());
}

Task<void> PeerLinks::Impl::announce_to(int to) {
  auto request = client(to).formRequest();
  request.setGeneration(generation_to_be());
  request.setAgreed(agreed);
  auto list = request.initIncarnations(static_cast<unsigned>(size()));
  for (int rank = 0; rank < size(); ++rank)
    list.set(static_cast<unsigned>(rank),
             rank == 0 ? options.incarnation : peer(rank).out->peer().incarnation.number);
  std::optional<ErrorParts> refused;
  try {
    co_await request.send().ignoreResult();
  } catch (const Error&) {
    refused = error_parts(std::current_exception());
  }
  if (refused) fail(*refused);
}

void PeerLinks::Impl::begin(std::uint64_t announced) {
  generation = announced;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options.rank) tasks.spawn(str("heartbeat of ", name(rank)), watch_silence(rank));
  changed.notify_all();
}

}  // namespace cairn
