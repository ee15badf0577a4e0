// PeerLinks: the other members of a group that spans processes: connecting with them, sending them
// parcels, and noticing when one is lost.
//
// A member makes its own calls on the connections that it dialled, and hears the others on those
// that were accepted, by itself or by an outside acceptor for it. States: forming (connections come
// and go, and are dialled again), formed (the loss of one is the end), failed.
//   Thread  the reactor's.
#pragma once
#include <capnp/capability.h>
#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/network/inbox.h"
#include "collective/network/network_group.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/byte_stream.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"

namespace cairn {

class PeerLinks {
 public:
  struct Events {
    // A parcel came; the promise resolves when it was used.
    std::function<kj::Promise<void>(int from, Parcel parcel)> parcel;
    // A member has left in order.
    std::function<void(int rank, const ErrorParts& error)> left;
  };

  // Listens, unless its options say that another does, and begins to dial, at once.
  //   Errors  those of rpc::Acceptor and of addresses.
  PeerLinks(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions options,
            Events events);
  ~PeerLinks();

  int rank() const;
  int size() const;
  rpc::Reactor& reactor();

  // Resolves when the group is formed; see make_network_group() for its errors.
  kj::Promise<void> form();
  // The service for a connection that was accepted by an acceptor other than this object's. If the
  // connection is of no other member of this group, by its task and the group's number, calls fail
  // with Unavailable; once the group has failed, with Aborted and the group's message.
  //   Life  the connection may outlive this object: its calls fail with Unavailable then.
  capnp::Capability::Client serve(const rpc::PeerInfo& peer, rpc::Connection& connection);
  // Resolves when the parcel was used. It does not resolve if the connection is lost: then the
  // group fails instead.
  kj::Promise<void> send(int to, const Parcel& parcel,
                         std::vector<rpc::ByteStream::Piece> pieces = {});
  // Sends a parcel that only carries news. It resolves also if that member is gone: a member that
  // has all it wants may have left.
  kj::Promise<void> tell(int to, const Parcel& parcel);

  // How many calls a member is known to have made; ask_calls() asks all of them, for a moment.
  std::uint64_t calls_of(int rank) const;
  kj::Promise<void> ask_calls();
  void set_own_calls(std::uint64_t calls);

  // Ends the group, here and on all members that can be reached; the first error counts.
  void fail(ErrorParts error);
  const std::optional<ErrorParts>& error() const;
  // Never resolves; fails with the group.
  kj::Promise<void> failure();
  // Announces to the others that this member has done all its calls and goes, or, if the group has
  // failed, makes sure that they know; within a moment.
  kj::Promise<void> leave();
  // "rank 2 (/job:worker/task:2 at 10.0.0.3:4000)"
  std::string name(int rank) const;
  std::string task() const;  // this member's, "/job:worker/task:2"
  // The error for calls that need this departed member; empty while it has not left in order.
  const std::optional<ErrorParts>& gone(int rank) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
