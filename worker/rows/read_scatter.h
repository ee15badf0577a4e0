// ReadScatter: from the shards' replies to the values of a wave's reads.
//
// A read that one message serves alone refers to that message where it came, so nothing is copied.
// A read whose rows come in several messages has a buffer in which they meet; where one shard sends
// them all, that buffer lies in the memory shared with it, and the shard writes each message's rows
// straight to where they belong. Parts that stand still come from the copies in a PartCache,
// without values in the reply.
//
//   ReadScatter scatter(routing, reads, requests, pool, memory_of);
//   // for each request, in any order: right before its call goes, and when its reply is here
//   const auto copies = scatter.ask(request, memory, cache, call);
//   scatter.land(request, copies, reply, cache);
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "rpc/loop/buffer_pool.h"
#include "worker/rows/part_cache.h"
#include "worker/rows/routing.h"
#include "worker/rows/shard_link.h"

namespace cairn::worker {

// Thread  the lane's.
class ReadScatter {
 public:
  using MemoryOf = std::function<BlobMemory&(ShardId)>;
  // Copies beside the segments of a request, without values where there is none; empty: no copy.
  using Copies = std::vector<PartCache::Copy>;

  // Makes the buffers of those reads whose rows do not come in exactly one message; the others have
  // no value yet. `requests` are what `routing` made of `reads`; all three outlive the scatter.
  //   Errors  those of `memory_of`, which is asked for shards that alone serve a read in pieces.
  ReadScatter(const Routing& routing, std::span<Read> reads, std::span<const ShardRequest> requests,
              rpc::BufferPool& pool, const MemoryOf& memory_of);

  // Fills what the request asks: headers, ids, encoding, how many bytes of values are expected, and
  // where they should go if they all belong to one buffer. A copy of a part is named in the call,
  // and returned, because the cache may drop it before the reply is here.
  //   `cache`  null: its copies are of another layout, whose numbers may mean other variables.
  Copies ask(const ShardRequest& request, BlobMemory& memory, const PartCache* cache,
             PullCall& call) const;

  // Puts the rows of a reply where they belong. `copies` are those that ask() returned; `cache` as
  // above, but as of now: the layout may have changed meanwhile.
  //   Errors  Internal: the shard left out values although the request named no copy.
  //   Cost    nothing per row where a read refers to the message, or the shard wrote in place;
  //           otherwise one copy.
  void land(const ShardRequest& request, std::span<const PartCache::Copy> copies,
            const PullReply& reply, PartCache* cache);

 private:
  Bytes destination(const ShardRequest& request, const BlobMemory& memory) const;
  void land_values(const Segment& segment, const std::byte* from,
                   const std::shared_ptr<const void>& owner);
  void land_copy(const Segment& segment, const Tensor& values);
  void remember(const Segment& segment, const PartCache::Written& at, PartCache& cache) const;

  std::span<Read> reads_;
  rpc::BufferPool& pool_;
  RowEncoding encoding_;
};

}  // namespace cairn::worker
