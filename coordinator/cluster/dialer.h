// Dialer: connects to the tasks of the cluster, and joins them to this session.
//
// One coordinator has a cluster at a time: each task is asked first, and answers who is at work
// there (rpc/server/holder.h). A coordinator that was just killed leaves a connection that may look
// alive until its heartbeats are missed: at the start that is waited for, twice as long. One that
// is still heard of then is at work.
//   Thread  the engine's.
//   Errors  connect(): as rpc::Network. join(): FailedPrecondition: another coordinator is at work
//           there, or has taken over what was ours; then the queue is failed as well, so that the
//           program gets the error instead of waiting for tasks that work for another coordinator.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "coordinator/cluster/session.h"
#include "core/base/incarnation.h"
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
  // Verifies that the task behind a connection to `member` is the one that the cluster has there.
  //   Errors  FailedPrecondition: another task answers. Names both tasks.
  template <typename Member>
  static void verify_task(const Member& member, const rpc::PeerInfo& peer) {
    if (peer.name() != member.name) refuse_task(member.name, member.address, peer.name());
  }
  // `Client` is the member's control client, `process` the incarnation at its other end.
  template <typename Client, typename Member>
  rpc::Task<void> join(Client* client, Member* member, ProcessIncarnation process);

 private:
  rpc::Hello hello(std::uint32_t endpoint) const;
  [[noreturn]] static void refuse_task(const std::string& wanted, const std::string& address,
                                       const std::string& found);
  [[noreturn]] void give_way(const std::string& other);

  Session& session_;
};

// Between two attempts to connect to a task that is away: doubled from the one to the other.
inline constexpr Duration kBackoffFirst = std::chrono::milliseconds(20);
inline constexpr Duration kBackoffMax = std::chrono::milliseconds(500);

}  // namespace cairn
