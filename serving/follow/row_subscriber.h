// RowSubscriber: RowStream on a loop of its caller's, as coroutines: one connection for each shard,
// dialled again whenever it ends.
//
//   What comes is queued until take(), one answer a shard: a consumer that is slow is asked for
//   nothing, and costs no more memory.
//   Thread  the reactor's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/network.h"
#include "serving/follow/row_stream.h"
#include "serving/follow/shard_answers.h"

namespace cairn::serving {

// How far a shard is, as of an answer of it.
struct ShardProgress {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  TimePoint covered;      // every change that is older has come
  bool complete = false;  // all that its last beginning promised has come
  bool ever = false;      // it was complete before
};

class RowSubscriber {
 public:
  // An answer: perhaps it only says how far the shard is.
  struct Delivery {
    std::size_t shard = 0;  // an index of all shards that were met so far
    std::vector<RowChanges> changes;
    ShardProgress progress;
  };
  struct Away {
    std::string address, why;
    TimePoint since;
  };

  // `number` is drawn at random, and not 0. `news` is called when there is something to take(), or
  // a ps has gone away or come back. `reactor` and `network` outlive this.
  //   Errors  InvalidArgument: no ps, or what is no address.
  RowSubscriber(rpc::Reactor& reactor, rpc::Network& network, RowStreamOptions options,
                std::uint64_t number, std::function<void()> news);
  ~RowSubscriber();

  // All that has come since, in its order.
  std::vector<Delivery> take();
  // How many shards there are, as far as is known; each ps is taken for one until it has answered.
  std::size_t shards() const { return shards_.size(); }
  // By shard: its ps was replaced by one that has fewer.
  std::vector<bool> left_over() const;
  bool all_known() const;  // each ps has said how many shards it has
  std::vector<Away> away() const;
  // Errors  PermissionDenied, FailedPrecondition: a ps refuses this subscriber. NotFound: a
  //         variable of the options is on no ps.
  void verify() const;

 private:
  struct Shard;
  rpc::Task<void> follow(Shard& shard);
  rpc::Task<void> converse(Shard& shard);
  void add_shards(const Shard& first, std::uint32_t endpoints);
  void use(Shard& shard, ShardDescription description);
  void deliver(Shard& shard, ShardChanges changes, std::int64_t step, TimePoint covered);
  kj::Promise<void> room(Shard& shard);
  Duration pause_after(const Shard& shard, std::size_t bytes, bool more, TimePoint asked) const;
  TimePoint now() const { return reactor_.clock().now(); }

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  const RowStreamOptions options_;
  const std::uint64_t number_;
  const std::function<void()> news_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::deque<Delivery> queue_;
  rpc::TaskGroup tasks_;  // last: it ends first
};

}  // namespace cairn::serving
