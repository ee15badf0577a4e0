// The inside of PeerLinks: peer_links.cc has what happens in a group, peer_forming.cc how a group
// comes to be.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/network/peer_links.h"
#include "collective/network/peer_service.h"
#include "core/base/error.h"
#include "core/base/incarnation.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/connection.h"
#include "rpc/server/server.h"
#include "rpc/server/signal.h"

namespace cairn {

// The state of another member.
struct Peer {
  std::unique_ptr<rpc::Connection> out;  // that this member dialled
  rpc::Connection* in = nullptr;         // that the other one dialled,
  std::uint64_t accepted = 0;            // after so many others
  std::string trouble = "nobody answers";
  std::uint64_t calls = 0;
  std::optional<ErrorParts> gone;

  bool connected() const { return out != nullptr && out->connected() && in != nullptr; }
  // With the same process both ways.
  bool is(ProcessIncarnation incarnation) const {
    return connected() && out->peer().incarnation == incarnation &&
           in->peer().incarnation == incarnation;
  }
};

struct PeerLinks::Impl final : PeerHost {
  Impl(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions given, Events events);
  ~Impl() noexcept override {
    tasks.cancel_all();
    door->close();
    acceptor.reset();
  }

  // ---- dialling ----
  void listen();
  rpc::Task<void> keep_dialling(int to);
  rpc::Task<std::string> dial(int to);
  void verify_task(int to, const rpc::PeerInfo& peer) const;
  kj::Promise<void> admission(int to, rpc::Connection& connection);
  rpc::Hello hello(int to) const;
  void drop(std::unique_ptr<rpc::Connection> ended);
  int rank_of(rpc::Role role, std::uint32_t task) const;

  // ---- forming ----
  rpc::Task<void> form_in_time();
  rpc::Task<void> form();
  rpc::Task<void> too_late();
  rpc::Task<void> announce();
  rpc::Task<void> announce_to(int to);
  rpc::Task<void> log_missing();
  bool all(const std::vector<ProcessIncarnation>& incarnations) const;
  std::string missing() const;
  void begin(std::uint64_t announced);
  std::uint64_t generation_to_be() const {  // if this is rank 0
    return options.group != 0 ? options.group : options.incarnation;
  }

  // ---- what others ask of this one (PeerHost) ----
  capnp::Capability::Client serve(const rpc::PeerInfo& peer, rpc::Connection& connection);
  void accepted(int from, rpc::Connection& connection);
  rpc::Task<void> join(std::uint64_t generation, std::uint64_t agreed,
                       std::vector<ProcessIncarnation> incarnations) override;
  rpc::Task<void> deliver(int from, rpc::Connection& connection, std::uint64_t generation,
                          Parcel parcel) override;
  std::uint64_t own_calls() const override { return calls; }
  void told(int from, rpc::Connection& connection, ErrorParts error, bool left) override;
  void closed(int from, rpc::Connection& connection) override;

  kj::Promise<void> put(int to, const Parcel& parcel, std::vector<rpc::ByteStream::Piece> pieces);

  // ---- the end ----
  rpc::Task<void> watch_silence(int rank);
  void lost(int rank, const std::string& why);
  void fail(ErrorParts error);
  rpc::Task<void> tell_all(ErrorParts error, bool left);
  kj::Promise<void> tell(int to, const ErrorParts& error, bool left);
  std::string name(int rank) const;
  int size() const { return static_cast<int>(peers.size()); }
  Peer& peer(int rank) { return peers[static_cast<std::size_t>(rank)]; }
  const GroupMember& member(int rank) const {
    return options.members[static_cast<std::size_t>(rank)];
  }
  wire::Member::Client client(int to) { return peer(to).out->bootstrap<wire::Member>(); }

  rpc::Reactor& reactor;
  rpc::Network& network;
  NetworkGroupOptions options;
  Events events;
  std::uint64_t agreed = 0, calls = 0;
  std::uint64_t generation = 0;  // 0: not formed
  std::optional<ErrorParts> error;
  std::vector<Peer> peers;  // by rank, this one's own place unused
  rpc::Signal changed;
  kj::Own<kj::PromiseFulfiller<void>> failing;
  kj::ForkedPromise<void> failed = nullptr, telling = nullptr;
  std::shared_ptr<PeerDoor> door = std::make_shared<PeerDoor>(*this);
  // null: another one listens
  std::unique_ptr<rpc::Acceptor> acceptor;
  rpc::TaskGroup tasks{[](const std::string&, const ErrorParts&) {}};  // their errors are fail()'s
};

// For notices of the end, and for questions that only make a message better.
inline constexpr Duration kFarewell = std::chrono::milliseconds(250);
// A member that fails sends the cause to the others before it closes. If another member sees its
// connections end first, that one waits so long before it reports a loss.
inline constexpr Duration kGrace = std::chrono::milliseconds(200);

}  // namespace cairn
