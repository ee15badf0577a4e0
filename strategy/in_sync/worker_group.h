// The processes of MultiWorkerMirroredStrategy: who they are, how they meet, and how a step runs on
// the replicas of one of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/base/communication_options.h"
#include "collective/network/network_group.h"
#include "coordinator/cluster/cluster_resolver.h"
#include "strategy/in_sync/replica_group.h"
#include "strategy/in_sync/replica_runner.h"
#include "strategy/in_sync/worker_devices.h"

namespace cairn {

// The chief, if there is one, and the workers behind it, by rank; none: this process is alone.
struct PlaceInGroup {
  std::vector<GroupMember> members;
  int rank = 0;  // of this process: its id_in_cluster
};
//   Errors  InvalidArgument: the cluster has ps; it has jobs, and this process is none of their
//           tasks; what validate_cluster_spec() refuses.
PlaceInGroup place_in_group(const ClusterResolver& resolver);

// A member whose errors, all of which end the group, say what the program's user does now. The root
// of a call must be a rank.
std::unique_ptr<Collective> with_advice(std::unique_ptr<Collective> member);

// The sum of what all members pass, of one type.
//   Errors  those of the group. InvalidArgument: a dtype that has no sum.
Tensor sum_of_members(Collective& group, const Tensor& own);

// Gathers one number from each process, by rank; all processes get all of them.
//   Errors  those of the group.
std::vector<std::int64_t> told_by_all(Collective& group, std::int64_t own);

// Runs steps on the replicas of a process. A step that fails here ends the group of processes, so
// that the others do not wait for it: their copies of the variables may have gone on without those
// here.
//   Thread  one at a time.
class WorkerRunner final : public ReplicaRunner {
 public:
  // Every process must construct its runner, since the constructor waits until their devices have
  // joined (worker_devices.h); `wish` says whether they should.
  // `processes`, which outlives it: this process's member. Others have as many replicas. `timeout`:
  // how long a replica waits for the others here, and the devices for one another's connections.
  WorkerRunner(std::vector<ReplicaGroup::Member> replicas, Collective& processes,
               std::chrono::milliseconds timeout,
               CommunicationImplementation wish = CommunicationImplementation::kAuto);

  //   Errors  also Unavailable: an earlier run failed.
  std::vector<std::vector<Tensor>> run(std::vector<Run> runs, const StepContext& step) override;
  bool sums_on_devices() const override { return replicas_.sums_on_devices(); }
  std::string sums_text() const override { return replicas_.sums_text(); }
  std::vector<CollectiveCounts> counts() const override { return replicas_.counts(); }

 private:
  ReplicaGroup replicas_;
  std::optional<DeviceWatch> watch_;  // while devices sum
  std::optional<ErrorParts> failed_;  // with what
};

}  // namespace cairn
