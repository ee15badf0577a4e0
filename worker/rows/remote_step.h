// RemoteStep: the variables on ps as one closure sees them.
//
// A wave is one pull, or one push, to each shard it touches (more where a request exceeds 4 MB).
// This file keeps only the order of the calls: routing.h says what goes to which shard,
// UpdateGather packs, ShardLink sends, ReadScatter unpacks.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "worker/rows/activity.h"
#include "worker/rows/read_scatter.h"
#include "worker/rows/remote_store.h"
#include "worker/rows/step_store.h"
#include "worker/rows/update_gather.h"

namespace cairn::worker {

// Remembers the version that each shard had at the closure's first pull, which its pushes tell.
//   Errors   Unavailable: a shard is away, repeat the whole step later. Aborted: a shard was
//            replaced between two waves of the closure, run it again from its reads. Cancelled:
//            this worker was fenced. InvalidArgument, OutOfRange: the request itself is wrong.
//   Cancel   dropping a call drops what is under way; drop it before the step goes. A message on
//            its way out may still refer to the values of an update, which it co-owns: their memory
//            must not be reused after a cancelled push.
class RemoteStep final : public StepStore {
 public:
  // `slot` receives what the step waits for; null: it is not recorded.
  explicit RemoteStep(RemoteStore& store, ActivitySlot* slot = nullptr);

  rpc::Task<void> pull(StepContext step, std::span<Read> reads) override;
  rpc::Task<void> push(StepContext step, std::span<Update> updates) override;
  // As the closure's push of that number, which several calls at once may be, each of another.
  rpc::Task<void> push_as(StepContext step, std::span<Update> updates, std::uint32_t number);
  // Memory shared with the one shard that holds the variable, if the values are large enough to lie
  // there. Otherwise, if the reactor's buffers are registered with a device, one of these: the
  // values then come from the device without a detour.
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override;

  std::uint64_t staleness() const override { return staleness_; }
  bool updated() const override { return updated_; }

 private:
  class Call;
  struct Piece {
    std::uint32_t number = 0, count = 1;
  };
  rpc::Task<void> pull_one(StepContext step, ReadScatter& scatter, const ShardRequest& request,
                           bool& failed);
  Bytes shared_place(VariableId variable, std::size_t bytes);
  rpc::Task<void> push_all(StepContext step, std::span<Update> updates,
                           std::vector<ShardRequest> requests);
  rpc::Task<void> push_one(StepContext step, const UpdateGather& gather,
                           const ShardRequest& request, Piece piece, bool& failed);
  std::shared_ptr<ShardLink> link(ShardId shard);
  PartCache* parts() const;  // null: they are of another layout than this step's
  void saw(ShardId shard, const ShardLink& link, ShardVersion version);

  RemoteStore& store_;
  std::shared_ptr<const Routing> routing_;
  std::map<ShardId, ShardVersion> pulled_;
  std::uint64_t staleness_ = 0;
  bool updated_ = false;
  std::uint32_t pushes_ = 0;  // waves pushed so far
  CallsUnderWay calls_;
};

}  // namespace cairn::worker
