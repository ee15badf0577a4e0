// Standby: a second coordinator waits until the first one has gone, to go on with its journal.
//
// The ps are asked, as they are what a coordinator works for: at least half of them have to answer,
// and none of those may have heard of the first one for a while. That one need not be dead: it is
// shut out by the term that is taken next (coordinator/journal/config_keeper.h).
//   Errors  what `on_wait` throws. InvalidArgument: the cluster has no ps. FailedPrecondition: a ps
//           is another cluster's, or takes no coordinator with this token.
#pragma once
#include <functional>
#include <string>

#include "coordinator/cluster/cluster_spec.h"
#include "core/base/clock.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/net/network.h"

namespace cairn {

struct StandbyOptions {
  ClusterSpec cluster;
  std::string cluster_id, token;
  // So long the first one must not have been heard of: five heartbeats.
  Duration silence = std::chrono::seconds(1);
  // Told of whom it waits for, whenever that changes.
  std::function<void(const std::string& text)> say = {};
  // Called some ten times a second; what it throws ends the waiting.
  std::function<void()> on_wait = {};
};

// Returns once the first one has gone. Of the reactor's thread.
rpc::Task<void> wait_as_standby(rpc::Reactor& reactor, rpc::Network& network,
                                StandbyOptions options);
// The same on sockets, for a thread without a loop.
void wait_as_standby(const StandbyOptions& options, rpc::Transport transport);

}  // namespace cairn
