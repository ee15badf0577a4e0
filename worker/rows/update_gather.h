// UpdateGather: from the values of a wave's updates to the blobs of its pushes.
//
// Values are named where they lie wherever that can be, and laid out anew where it cannot: in
// shared memory those that were not computed there, on a socket those that travel encoded, and
// those that are many and small.
//
//   const UpdateGather gather(routing, updates, pool);
//   gather.fill(request, memory, call);   // for each request, right before its call goes
#pragma once
#include <span>
#include <vector>

#include "rpc/loop/buffer_pool.h"
#include "worker/rows/routing.h"
#include "worker/rows/shard_link.h"

namespace cairn::worker {

// Thread  the lane's.
class UpdateGather {
 public:
  // `updates` outlive the gather; `routing` made the requests of them.
  UpdateGather(const Routing& routing, std::span<const Update> updates, rpc::BufferPool& pool)
      : updates_(updates), pool_(pool), encoding_(routing.encoding()) {}

  // Fills headers, ids, values and encoding of a push. The call co-owns the values that it names
  // where they lie; they must not change until it was answered.
  //   Cost  one copy of the values that are laid out anew, else none.
  void fill(const ShardRequest& request, BlobMemory& memory, PushCall& call) const;

 private:
  std::vector<Bytes> shared_values(const ShardRequest& request, BlobMemory& memory) const;
  std::vector<Bytes> travelling_values(const ShardRequest& request) const;
  Bytes where_it_lies(const Segment& segment) const;
  void lay_out(const Segment& segment, std::byte* out) const;
  const Tensor& value(const Segment& segment) const { return updates_[segment.item].value; }

  std::span<const Update> updates_;
  rpc::BufferPool& pool_;
  RowEncoding encoding_;
};

}  // namespace cairn::worker
