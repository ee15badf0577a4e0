// PeerGroup: a member of a group that spans processes, as promises on a reactor. NetworkGroup is a
// thread around it; a simulation runs all members on one reactor.
//   Thread  the reactor's.
#pragma once
#include <kj/async.h>

#include <memory>
#include <optional>
#include <vector>

#include "collective/base/call.h"
#include "collective/network/group_calls.h"
#include "collective/network/peer_links.h"

namespace cairn {

class PeerGroup {
 public:
  // Listens, unless its options say that another does, and dials at once. Errors: those of
  // PeerLinks, of checked() and of Address::parse().
  PeerGroup(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions options);
  ~PeerGroup();  // not from inside one of its own promises

  kj::Promise<void> form() { return links_->form(); }
  // The service for a connection of another member that an outside acceptor has accepted; see
  // PeerLinks::serve(). The connection may outlive this object.
  capnp::Capability::Client serve(const rpc::PeerInfo& peer, rpc::Connection& connection) {
    return links_->serve(peer, connection);
  }
  // The member's next call; see GroupCalls::run().
  kj::Promise<std::vector<Tensor>> run(CollectiveCall call) { return calls_.run(std::move(call)); }
  void abort(const ErrorParts& error);
  // Why the group has ended; empty: it has not.
  const std::optional<ErrorParts>& error() const { return links_->error(); }
  // Never resolves; its error is error(), once there is one.
  kj::Promise<void> failure() { return links_->failure(); }
  // To be awaited, for a moment at most, before the group is destroyed: the others then know
  // whether this member leaves in order or in the middle of its calls.
  kj::Promise<void> leave();
  int rank() const { return links_->rank(); }
  int size() const { return links_->size(); }

 private:
  GroupCalls calls_;
  std::unique_ptr<PeerLinks> links_;  // after the calls: its service refers to them
};

}  // namespace cairn
