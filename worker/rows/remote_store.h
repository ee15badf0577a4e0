// RemoteStore: variables that live on ps shards: which layout is in force, the links to the shards,
// and copies of parts that stand still. A lane has one; each closure at work sees it through a
// RemoteStep (remote_step.h).
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/base/incarnation.h"
#include "core/rows/layout.h"
#include "rpc/loop/reactor.h"
#include "worker/rows/part_cache.h"
#include "worker/rows/routing.h"
#include "worker/rows/shard_link.h"
#include "worker/rows/step_store.h"

namespace cairn::worker {

// How this lane identifies itself to the shards. Changing any of it needs new connections.
struct LaneIdentity {
  rpc::Hello hello;  // session, task, incarnation of the process; the endpoint is each link's own
  RowEncoding encoding = RowEncoding::kRaw;
};

class RemoteStore final : public StepStores {
 public:
  RemoteStore(rpc::Reactor& reactor, rpc::Network& network, ShardLinkOptions options = {});

  // Links of another session are dropped; closures under way keep theirs until they end.
  void identify(LaneIdentity identity);
  void forget_layout();
  // Links to a shard that another process answers for now are closed: their calls end with
  // Unavailable. Errors InvalidArgument: parts that do not cover a variable, unknown shards or
  // addresses.
  void set_layout(std::shared_ptr<const Layout> layout);

  std::vector<VariableId> resolve(const Graph& graph, std::uint64_t sent_layout) const override;
  std::unique_ptr<StepStore> open(ActivitySlot* slot) override;

  // null before the first layout
  const std::shared_ptr<const Routing>& routing() const { return routing_; }
  // The one link of this lane to `shard` under the present layout. Errors Unavailable: its ps is
  // away.
  std::shared_ptr<ShardLink> link(ShardId shard);
  std::shared_ptr<ShardLink> find_link(ShardId shard) const;  // null: not asked for yet
  rpc::Reactor& reactor() { return reactor_; }
  PartCache& parts() { return parts_; }  // of this session and layout

 private:
  struct Linked {
    ShardReplica to;  // as the layout has it
    std::shared_ptr<ShardLink> link;
  };
  rpc::Reactor& reactor_;
  rpc::Network& network_;
  ShardLinkOptions options_;
  LaneIdentity identity_;
  std::shared_ptr<const Routing> routing_;
  std::map<ShardId, Linked> links_;
  PartCache parts_;
};

}  // namespace cairn::worker
