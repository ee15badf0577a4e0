// BlobMemory: the memory in which the blobs of calls to one shard may lie. Where the shard is on
// this host, part of it is shared with the shard, and a blob there need not travel.
//
//   Bytes ids = memory.take(8 * count);   // fill ids.data, then name `ids` in a call
#pragma once
#include <cstddef>

#include "worker/rows/bytes.h"

namespace cairn::worker {

// Thread  the lane's.
class BlobMemory {
 public:
  // Whether a blob of this size would be put into shared memory: not where there is none, and not
  // if the blob is so small that a socket copies it as fast.
  virtual bool shares(std::size_t bytes) const = 0;
  // Whether these bytes lie in shared memory already.
  virtual bool shared(const Bytes& bytes) const = 0;
  // Memory to be filled: shared if shares(bytes) and there is room, else from the reactor's pool.
  virtual Bytes take(std::size_t bytes) = 0;
  // Shared memory however small the blob; no data where there is no room, or none is shared.
  virtual Bytes take_shared(std::size_t bytes) = 0;

 protected:
  ~BlobMemory() = default;
};

}  // namespace cairn::worker
