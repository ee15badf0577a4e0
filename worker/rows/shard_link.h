// ShardLink: this lane's one data connection to one shard.
//
// Connects when first asked and again after a loss. A call that was under way when the connection
// ended fails and is never repeated here: whether a push landed is for the closure's retry to find
// out.
//   Thread  the lane's.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "core/graph/update_rule.h"
#include "core/rows/row_encoding.h"
#include "core/rows/shard_version.h"
#include "core/rows/variable_store.h"
#include "rpc/loop/memory_use.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello.h"
#include "rpc/net/network.h"
#include "worker/rows/blob_memory.h"
#include "worker/rows/segment.h"

namespace cairn::worker {

struct PartRows {
  VariableId variable = 0;
  std::uint32_t part = 0;
  std::uint32_t rows = 0;  // 0 with whole
  bool whole = false;
  // of a pull, with whole: the last write in the copy that is at hand; 0: there is none
  std::uint64_t written = 0;
};

struct PullCall {
  StepContext step;
  std::vector<PartRows> headers;
  Bytes ids;  // int64, local to the part, header after header
  RowEncoding encoding = RowEncoding::kRaw;
  Lineage copies_of;            // the lineage of which the copies at hand are
  std::size_t value_bytes = 0;  // expected in the reply, without copies at hand
  // where they should go, of that size; where it is not shared with the shard they go elsewhere
  Bytes into;
};

struct PullReply {
  ShardVersion version;
  // of each header with whole, in their order; of what is as the copy at hand no values came
  std::vector<std::uint64_t> written;
  // in the received message or in shared memory, 8-byte aligned
  std::span<const std::byte> values;
  std::shared_ptr<const void> owner;  // of that
};

// Rows of one dense part, local numbers, with their slots.
struct StateCall {
  std::uint64_t session = 0;
  Epoch epoch;
  VariableId variable = 0;
  std::uint32_t part = 0;
  std::int64_t begin = 0;
  std::uint32_t rows = 0;
  std::size_t bytes = 0;  // that they should come to, slots included
};

struct StateReply {
  std::int64_t updates = 0;  // by optimizers that the part has had
  // Replies that tell both alike are of one state of the part.
  ShardVersion version;
  std::uint64_t written = 0;
  // in the received message, 8-byte aligned; not always of the size that the call expected
  std::span<const std::byte> rows;
  std::shared_ptr<const void> owner;  // of that
};

struct PartUpdate {
  PartRows rows;
  UpdateRule rule;
  float learning_rate = 0;
};

// Blobs up to this size are copied into the message, which is cheaper than a lease; larger ones are
// referred to.
inline constexpr std::size_t kCopiedBytesMax = 8 << 10;
// If a message refers to bytes in several places, each holds so many on average: smaller ones are
// copied into one.
inline constexpr std::size_t kScatteredBytesMin = 16 << 10;

struct PushCall {
  StepContext step;
  ShardVersion pulled;
  std::vector<PartUpdate> headers;
  Bytes ids;
  std::vector<Bytes> values;   // one after the other,
  bool values_shared = false;  // or each header's own, in memory shared with the shard
  RowEncoding encoding = RowEncoding::kRaw;
  std::uint32_t piece = 0;
  std::uint32_t pieces = 1;
  std::uint32_t slice = 0;
};

struct PushReply {
  ShardVersion version;
  std::uint64_t staleness = 0;
  bool duplicate = false;
};

struct ShardLinkOptions {
  // of memory shared with a shard of this host, taken as it is used; 0: none
  std::size_t shared_bytes = std::size_t{1} << 30;
  std::size_t shared_min = 16 << 10;  // smaller blobs travel: a socket copies them as fast
  // of values a request; the same in all workers, for the slices of a push go by it
  std::size_t piece_bytes_max = std::size_t{4} << 20;
  // each way: while one is worked at the next one comes, and the caches still hold it when it is
  // its turn
  std::size_t pieces_under_way = 2;
  // Gets the memory shared with a shard, as it is used; empty: nothing is registered.
  rpc::RegisterMemory register_memory;
  Duration connect_deadline = std::chrono::seconds(1);  // for all attempts of one connect
  Duration backoff_min = std::chrono::milliseconds(5);
  Duration backoff_max = std::chrono::milliseconds(200);
  Duration call_deadline = std::chrono::seconds(30);
};

// The shard at the other end of a link, and where to reach it.
struct ShardAddress {
  rpc::Address address;
  std::uint32_t ps = 0;
  std::uint32_t endpoint = 1;
  bool operator==(const ShardAddress&) const = default;
};

class ShardLink final : public BlobMemory, public std::enable_shared_from_this<ShardLink> {
 public:
  // `hello` names this lane's session, task and incarnation; the endpoint is filled in here.
  ShardLink(rpc::Reactor& reactor, rpc::Network& network, ShardAddress shard, rpc::Hello hello,
            ShardLinkOptions options = {});
  ~ShardLink();

  // Waits for credit to pull (kIn) or to push (kOut) so many bytes of values. Acquire it before the
  // call is made and hold it until the answer has come. Credit is given in the order of asking: of
  // two closures, the first gets all its rows, and pushes everything, before the second, instead of
  // both finishing at once and later. Bytes that lie in shared memory need no credit: they do not
  // travel, and the shard should have work while the lane computes. A piece of a push that lies
  // there is answered only when the shard has all pieces.
  //   Errors  Unavailable: the connection has ended.   Needs  a connection.
  kj::Promise<rpc::Credit> acquire_credit(rpc::Way way, std::size_t bytes);

  // Errors of both Unavailable: no connection within the deadline, lost under way, or no answer;
  // names the shard. Else what the shard says (rpc/cairn.capnp). Cancel dropping the task; a push
  // may have landed nevertheless.
  rpc::Task<PullReply> pull(PullCall call);
  rpc::Task<PushReply> push(PushCall call);
  // Errors and cancel as pull(). Connects, and waits for its own credit to pull: the rows always
  // travel, so that it needs some where a pull needs none.
  rpc::Task<StateReply> read_state(StateCall call);

  // Memory for the blobs of this link's calls.
  bool shares(std::size_t bytes) const override;
  bool shared(const Bytes& bytes) const override;
  Bytes take(std::size_t bytes) override;
  Bytes take_shared(std::size_t bytes) override;

  bool connected() const;
  // Connects now unless connected.
  rpc::Task<void> connect();
  void close();
  const ShardAddress& shard() const { return shard_; }
  const std::string& name() const { return name_; }  // "/job:ps/task:1 shard 0 (tcp://...)"

 private:
  struct Live;
  rpc::Task<void> dial();
  [[noreturn]] void lost(const char* doing, const Error& error) const;

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  ShardAddress shard_;
  rpc::Hello hello_;
  ShardLinkOptions options_;
  std::string name_;
  std::shared_ptr<Live> live_;
  struct Dialling;
  std::unique_ptr<Dialling> dialling_;
};

}  // namespace cairn::worker
