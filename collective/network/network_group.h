// NetworkGroup: a Collective whose members are processes.
//
//   NetworkGroupOptions options;
//   options.members = {{"worker", 0, "10.0.0.1:4000"}, {"worker", 1, "10.0.0.2:4000"}};
//   options.rank = 1;                                // this process
//   auto group = make_network_group(options);        // returns when all members are there
//
// Large all-reduces go around a ring, in which each member sends and receives 2 (n - 1) / n of the
// bytes, the least there can be; small ones go up and down a tree, which waits 2 log2(n) times.
// Their order of summation is a function of the group's size and the values' sizes: slice s of n of
// a pack is summed as ((v[s+1] + v[s+2]) + ...) + v[s], ranks modulo n; in the tree, member v adds
// to its own what v+1, v+2, v+4, ... bring, in this order.
//   Source  "Bandwidth optimal all-reduce algorithms for clusters of workstations", Patarasuk and
//           Yuan, 2009.
//
//   Forming  every member listens at its address and dials all others. When all are connected with
//            all, rank 0 announces the group and its generation; what members of an earlier
//            generation still send is refused.
//   When     an all-reduce goes on, on a thread of the group's own, from begin_all_reduce() on.
//   Lost     a member whose connection ends, or that is silent for HeartbeatOptions' time, is
//            lost: the group fails on all others with Unavailable naming it, whose task() is that
//            member, within a second. The object is of no more use then; make a new one, which
//            waits for the lost member's successor.
//   Leaving  a member that is destroyed when all its calls are complete leaves in order: only calls
//            that need it fail.
//   Memory   a reduction must have an owner: its values are used until that is let go of.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/base/collective.h"
#include "collective/base/communication_options.h"
#include "rpc/net/transport.h"

namespace cairn {

// One process of the group, as the cluster's specification has it.
struct GroupMember {
  std::string job = "worker";  // "chief", "worker" or "ps"
  std::uint32_t index = 0;
  std::string address;         // "host:port", as all members reach it
  std::uint32_t endpoint = 0;  // that the others dial there

  std::string task() const;  // "/job:worker/task:0"
};

struct NetworkGroupOptions {
  std::vector<GroupMember> members;  // by rank; the same on all members
  int rank = 0;                      // which of them is this one
  CommunicationOptions communication;
  // How long the members wait for each other at the start. Then: DeadlineExceeded, naming those
  // that are missing and why.
  Duration start_timeout = std::chrono::minutes(5);
  // A silent member counts as lost after so many intervals in a row without an answer.
  Duration heartbeat_interval = std::chrono::milliseconds(150);
  int heartbeats_missed_max = 5;
  std::string cluster;            // the same on all members
  std::string token;              // the cluster's secret
  bool insecure = false;          // listen at an address that other hosts can reach without a token
  std::uint64_t incarnation = 0;  // of this object; 0: random
  rpc::Transport transport = rpc::Transport::kAuto;

  // The next two are for a PeerGroup alone; they are the same on all members.
  //
  // False: an acceptor that is there already listens at this member's address, with this
  // `incarnation`, and its owner passes the connections of the others to PeerGroup::serve().
  bool listens = true;
  // Which of the groups that these processes form one after the other this is, a number that none
  // of them has been given before. Every connection says it (Hello::session), parcels carry it as
  // their generation, and those of another number are refused. The group is formed once: what ends
  // the forming of one member ends it for all. 0: the group has no number; its generation is rank
  // 0's incarnation.
  std::uint64_t group = 0;
};

// Returns when the group is formed.
//   Errors  InvalidArgument: a rank that is none of the members, an address that is none;
//           DeadlineExceeded: members are missing; PermissionDenied, FailedPrecondition: a member
//           has another token, another cluster, or other members or options, both sides named;
//           Unavailable: a member was lost while the group formed, or cannot listen. After the last
//           one it is worth trying again.
std::unique_ptr<Collective> make_network_group(const NetworkGroupOptions& options);

}  // namespace cairn
