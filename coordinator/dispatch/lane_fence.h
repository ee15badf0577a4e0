// LaneFence: shuts lanes that are lost out of every shard.
//
// Each connection of a lane gets an incarnation of its own, numbered upwards. A fence names the
// newest number and those that live, so that a shard needs no history: it refuses every other
// incarnation up to the newest. Before the closures of a lost lane are sent again, the fence has
// been raised on every shard that serves; a shard that is away is fenced before it opens.
//   Thread  the engine's.
//   Errors  raise(): none; a ps that cannot be fenced in 10 s is cut off. raise_on(): the shard's.
#pragma once
#include <cstdint>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "core/base/incarnation.h"
#include "rpc/loop/task.h"

namespace cairn {

class LaneFence {
 public:
  LaneFence(Session& session, ClusterMembers& members) : session_(session), members_(members) {}

  // For a lane that has just been connected. Those of a later term are all higher.
  LaneIncarnation next_incarnation();
  // How often a fence was raised so far. A caller that fences one ps and then opens it compares the
  // numbers before and after: in between, a lane may have been lost.
  std::uint64_t raised() const { return raised_; }

  // Ends once every ps that serves is fenced or cut off: from then on no shard takes from a lost
  // lane what another is about to do again. A lane is lost once its incarnation is 0.
  rpc::Task<void> raise();
  // The same on one ps, which is about to be opened.
  rpc::Task<void> raise_on(Ps* ps);

 private:
  LaneIncarnation newest() const;

  Session& session_;
  ClusterMembers& members_;
  std::uint64_t given_ = 0;  // incarnations, in this term
  std::uint64_t raised_ = 0;
};

}  // namespace cairn
