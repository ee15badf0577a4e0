// The GPUs of all replicas of MultiWorkerMirroredStrategy as one group that sums values where they
// lie (core/kernels/device_group.h), and the watch that it needs.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "collective/base/collective.h"
#include "collective/base/communication_options.h"
#include "core/base/clock.h"
#include "core/kernels/device_group.h"

namespace cairn {

// Joins the devices of all processes' replicas, or of none: they exchange what they can do,
// and decide alike. One process makes the group's id and sends it to the others; each says whether
// it has connected its own. All processes make the call, with as many devices each.
//   `processes` null: this process is alone.
//   `wish`     kRing: none, and no process is asked.
//   `timeout`  for connecting; NCCL does not say for which process it waits. A process that is
//              lost meanwhile is named when that is over, or sooner, if NCCL notices.
//   Result     no members, and why: "worker 1: replicas share gpu:0".
//   Errors     FailedPrecondition, on all: the wish is kNccl and there is no such group; names the
//              worker and the cure. Those of the group of processes.
DeviceGroup join_devices_of_workers(Collective* processes, std::span<Device* const> here,
                                    CommunicationImplementation wish, Duration timeout);

// Has devices aborted when a group of processes has failed, since they wait without a limit for
// those of a process that is lost, while the host waits for them.
class DeviceWatch {
 public:
  // `abort` runs on a thread of the watch's, and may take its time. The group outlives the watch.
  DeviceWatch(Collective& processes, std::function<void()> abort);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace cairn
