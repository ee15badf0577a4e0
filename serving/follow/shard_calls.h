// Calls of a reader to a shard (rpc/cairn.capnp), as coroutines.   Thread: the reactor's.
#pragma once
#include <algorithm>
#include <exception>
#include <memory>

#include "rpc/loop/reactor.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"
#include "serving/follow/row_stream.h"
#include "serving/follow/shard_answers.h"

namespace cairn::serving {

// One shard of a ps: endpoint 1 and up.
struct ShardAddress {
  std::size_t ps = 0;  // its index
  rpc::Address address;
  std::uint32_t endpoint = 1;
};

// How long to wait before a shard is dialled again.
class BackOff {
 public:
  Duration next() { return std::exchange(now_, std::min(2 * now_, kMost)); }
  void reset() { now_ = kLeast; }

 private:
  static constexpr Duration kLeast = std::chrono::milliseconds(50), kMost = std::chrono::seconds(2);
  Duration now_ = kLeast;
};

//   Errors  InvalidArgument: no ps, or what is no address.
std::vector<ShardAddress> first_shards(const RowStreamOptions& options);
//   Errors  those of Network::connect().
rpc::Task<std::unique_ptr<rpc::Connection>> connect_reader(rpc::Reactor& reactor,
                                                           rpc::Network& network,
                                                           const RowStreamOptions& options,
                                                           std::uint64_t number,
                                                           const ShardAddress& shard);
//   Errors  Unavailable: the shard is not open. DeadlineExceeded.
rpc::Task<ShardDescription> describe_shard(rpc::Reactor& reactor, wire::Shard::Client client);
// The ps does not want this reader: its token or its cluster is another one. Null: false.
bool is_refusal(const std::exception_ptr& error);

inline constexpr Duration kShardDeadline = std::chrono::seconds(30);  // of a call

}  // namespace cairn::serving
