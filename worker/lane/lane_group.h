// LaneGroup: the lanes that all-reduce with each other, one per worker process, as one of them sees
// them.
//
// The coordinator sends every member of a group its number, its rank and the addresses of all. The
// members then connect with each other, at the endpoints that they serve anyway: a hello's session
// is the group's number there. The group ends for all of them when one is lost, leaves or gives up;
// the coordinator then forms another one, with another number, of those that are left.
//   Numbers  no process that knows a number gets it for a second group: the number alone
//            keeps what an earlier group still sends out of a later one.
//   Silence  A lane answers nothing while it computes. So it counts as lost soon when a connection
//            to it ends, but by its silence only after LaneGroupOptions::heartbeat; a host that is
//            gone is noticed sooner by the coordinator, which asks the control endpoint.
//   Thread  the reactor's.
#pragma once
#include <capnp/capability.h>
#include <kj/async.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/incarnation.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/connection.h"
#include "rpc/net/network.h"
#include "rpc/server/heartbeat.h"
#include "worker/lane/async_collective.h"

namespace cairn::worker {

// Lane 0 of a worker, as a member of a group.
struct GroupLane {
  std::uint32_t task = 0;  // the worker's index
  std::string address;     // at which the worker listens
};

struct GroupConfig {
  std::uint64_t number = 0;        // never 0 if there are members
  std::uint32_t rank = 0;          // of this lane
  std::vector<GroupLane> members;  // by rank; none: no group
};

struct LaneGroupOptions {
  std::string cluster;
  std::string token;
  std::uint32_t task = 0;          // the worker's index
  ProcessIncarnation incarnation;  // of the worker, as its acceptor has it
  std::uint32_t lane = 0;          // which of the worker's lanes this is
  Duration form_deadline = std::chrono::seconds(30);
  rpc::HeartbeatOptions heartbeat{std::chrono::seconds(1), 30};
};

class LaneGroup final : public AsyncCollective {
 public:
  LaneGroup(rpc::Reactor& reactor, rpc::Network& network, LaneGroupOptions options);
  ~LaneGroup() override;

  // Leaves the group that it is in, if any, then forms the new one; resolves when all members are
  // connected with each other. Without members it only leaves.
  //   Errors  InvalidArgument: a configuration that no group can have; the lane stays where it is.
  //           DeadlineExceeded naming those that are missing, after `form_deadline`. Aborted: it
  //           had to leave meanwhile. Another member's error, if that gave up.
  //   Cancel  dropping the promise: it forms, or fails to, without a result.
  kj::Promise<void> join(GroupConfig config);
  // In order, if no call is under way. The other members' calls that need this one fail.
  void leave();
  // This member's step failed, or it goes: all members' calls fail at once, this one's included.
  // Nothing if it is in no group.
  void abort(const ErrorParts& error);

  // The group's number; 0: the lane is in none, or in one that has not formed yet or has ended.
  std::uint64_t number() const;
  int size() const;  // its members; 0 likewise
  int rank() const;  // of this lane in it; -1 likewise

  // Sums are taken in the order that collective/network/network_group.h has, and hold the same bits
  // on all members.
  //   Errors  Aborted: whatever ended the group, with its message and the task of the member to
  //           blame; or there is no group. InvalidArgument: a dtype that has no sum or no mean; no
  //           call was made then.
  kj::Promise<void> all_reduce(const StepContext& step,
                               std::vector<AllReduceBuffer> reductions) override;

  // The service for another worker's connection to this lane's endpoint. It may outlive this
  // object. If it is for no group of this lane, every call gets Unavailable.
  capnp::Capability::Client serve(const rpc::PeerInfo& peer, rpc::Connection& connection);

  static constexpr std::size_t kMembersMax = 1024;

 private:
  struct Membership;
  void check(const GroupConfig& config) const;
  static rpc::Task<void> form(Membership& membership);
  rpc::Task<void> leave_in_order(std::shared_ptr<Membership> left);
  std::string name() const;

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  const LaneGroupOptions options_;
  std::shared_ptr<Membership> current_;  // also after it has ended, until it leaves
  rpc::TaskGroup leaving_;
};

}  // namespace cairn::worker
