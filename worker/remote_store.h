// RemoteStore: variables that live on ps shards. A lane has one; each closure at work sees it
// through a RemoteStep.
//
// A wave is one pull, or one push, to each shard it touches (more where a request exceeds 4 MB). A
// read that one message serves alone refers to that message in place; others are gathered into a
// pooled buffer.
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/rows/layout.h"
#include "core/rows/variable_store.h"
#include "rpc/reactor.h"
#include "rpc/task.h"
#include "worker/doing.h"
#include "worker/part_cache.h"
#include "worker/routing.h"
#include "worker/shard_link.h"

namespace cairn::worker {

// Who this lane is to the shards. Changing any of it needs new connections.
struct LaneIdentity {
  rpc::Hello hello;  // session, task, incarnation of the process; the endpoint is each link's own
  Encoding encoding = Encoding::kRaw;
};

class RemoteStore {
 public:
  RemoteStore(rpc::Reactor& reactor, rpc::Network& network, LinkOptions options = {});

  // Links of another session are dropped; closures under way keep theirs until they end.
  void identify(LaneIdentity identity);
  void forget_layout();
  // Links whose ps moved or restarted are dropped. Errors InvalidArgument: parts that do not cover
  // a variable, unknown shards or addresses.
  void set_layout(std::shared_ptr<const Layout> layout);

  // null before the first layout
  const std::shared_ptr<const Routing>& routing() const { return routing_; }
  // The one link of this lane to `shard` under the present layout. Errors Unavailable: its ps is
  // away.
  std::shared_ptr<ShardLink> link(ShardId shard);
  std::shared_ptr<ShardLink> find_link(ShardId shard) const;  // null: nobody asked for it yet
  rpc::Reactor& reactor() { return reactor_; }
  PartCache& parts() { return parts_; }  // of this session and layout

 private:
  struct Linked {
    std::uint64_t incarnation = 0;  // of the ps, as the layout has it
    std::shared_ptr<ShardLink> link;
  };
  rpc::Reactor& reactor_;
  rpc::Network& network_;
  LinkOptions options_;
  LaneIdentity identity_;
  std::shared_ptr<const Routing> routing_;
  std::map<ShardId, Linked> links_;
  PartCache parts_;
};

// The store as one closure sees it: remembers the version that each shard had at the closure's
// first pull.
//   Errors   Unavailable: a shard is away, repeat the whole step later. Aborted: a shard was
//            replaced between two waves of the closure, run it again from its reads. Cancelled:
//            this worker was fenced. InvalidArgument, OutOfRange: the request itself is wrong.
//   Cancel   dropping a call drops what is under way; drop it before the step goes. A message on
//            its way out may still refer to the values of an update, which it co-owns: their memory
//            must not be reused after a cancelled push.
class RemoteStep final : public UpdatePlaces {
 public:
  // `slot` is told what the step waits for; null: nobody wants to know.
  explicit RemoteStep(RemoteStore& store, DoingSlot* slot = nullptr);

  // One wave each. What the spans point to stays valid until it has ended.
  rpc::Task<void> pull(StepContext step, std::span<Read> reads);
  rpc::Task<void> push(StepContext step, std::span<Update> updates);
  // Memory shared with the one shard that holds the variable, if the values are large enough to lie
  // there.
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override;

  std::uint64_t staleness() const { return staleness_; }  // the largest over all pushes so far
  bool updated() const { return updated_; }

 private:
  rpc::Task<void> pull_one(StepContext step, std::span<Read> reads, const ShardRequest& request,
                           bool& failed);
  class Call;
  struct Piece {
    std::uint32_t number = 0, count = 1;
  };
  rpc::Task<void> push_one(StepContext step, std::span<Update> updates, const ShardRequest& request,
                           Piece piece, bool& failed);
  void meeting_places(std::span<Read> reads, const std::vector<ShardRequest>& requests);
  Bytes place_of(std::span<Read> reads, const ShardRequest& request, const ShardLink& link) const;
  // The copies at hand of what the request reads, named in `call`; beside the segments, empty if
  // there is none.
  std::vector<PartCache::Copy> copies_for(std::span<Read> reads, const ShardRequest& request,
                                          PullCall& call) const;
  void scatter(std::span<Read> reads, const ShardRequest& request,
               std::span<const PartCache::Copy> copies, const PullReply& reply);
  void take_copy(Read& read, const Segment& segment, const Tensor& values) const;
  void keep_copy(const Read& read, const Segment& segment, const PartCache::Written& at) const;
  std::shared_ptr<ShardLink> link(ShardId shard);
  void saw(ShardId shard, const ShardLink& link, Version version);
  Bytes ids_of(const ShardRequest& request, ShardLink& link) const;
  // A push's values, for PushCall. In shared memory each segment's, where they were computed if
  // that is there; nothing if it is full.
  std::vector<Bytes> shared_values(std::span<const Update> updates, const ShardRequest& request,
                                   ShardLink& link) const;
  std::vector<Bytes> travelling_values(std::span<const Update> updates,
                                       const ShardRequest& request) const;
  Bytes where_it_lies(std::span<const Update> updates, const Segment& segment) const;
  void lay_out(std::span<const Update> updates, const Segment& segment, std::byte* out) const;
  const std::byte* rows_of(std::span<const Update> updates, const Segment& segment) const;
  std::size_t wire_bytes(std::span<const Update> updates, const Segment& segment) const;

  RemoteStore& store_;
  std::shared_ptr<const Routing> routing_;
  std::map<ShardId, Version> pulled_;
  std::uint64_t staleness_ = 0;
  bool updated_ = false;
  std::uint32_t pushes_ = 0;  // waves pushed so far
  CallsUnderWay calls_;
};

}  // namespace cairn::worker
