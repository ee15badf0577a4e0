// Dialer: connects to the tasks of the cluster, and joins them to this session.
//
// One coordinator has a cluster at a time: each task is asked first, and answers who is at work
// there (rpc/server/task_owner.h). A coordinator that was just killed leaves a connection that may
// look alive until its heartbeats are missed: at the start that is waited for, twice as long. One
// that is still heard of then is at work.
//   Thread  the engine's.
//   Errors  connect(): as rpc::Network. join(): FailedPrecondition: another coordinator is at work
//           there, or has taken over what was ours; then the queue is failed as well, so that the
//           program gets the error, and waits for no tasks of another. dial(): those of
//           both; FailedPrecondition: another task than the member answers there, both named.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/cluster/task_client.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello.h"

namespace cairn {

class Dialer {
 public:
  explicit Dialer(Session& session) : session_(session) {}

  // Connects to a task at `address`: control is endpoint 0, its lanes or shards are 1, 2, ...
  kj::Promise<std::unique_ptr<rpc::Connection>> connect(const rpc::Address& address,
                                                        std::uint32_t endpoint);
  // Connects to the control service of `member` and joins the task.
  rpc::Task<std::unique_ptr<TaskClient>> dial(ClusterMember* member);
  // Joins the task at the other end of `client`, which is `member`.
  rpc::Task<void> join(TaskClient* client, ClusterMember* member);

 private:
  rpc::Hello hello(std::uint32_t endpoint) const;

  Session& session_;
};

// Between two attempts to connect to a task that is away: doubled from the one to the other.
inline constexpr Duration kBackoffFirst = std::chrono::milliseconds(20);
inline constexpr Duration kBackoffMax = std::chrono::milliseconds(500);

}  // namespace cairn
