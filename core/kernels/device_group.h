// DeviceGroup: devices that sum values where they lie, so that what replicas reduce need not pass
// through the host's memory. They are those of one process, or those of several, each of which has
// as many members of one group.
//
// Each replica has a member. All members make the same calls in the same order, and the host does
// not wait for the devices: begin() enqueues the sums behind the work that makes the values, and
// they are summed while the device goes on with other work.
//
//   Order   of summation is the devices' own: another one than the host's, the same for equal
//           devices, links and sizes, so that a run repeats on one machine. All members end with
//           the same bits.
//   Failure A device whose member has begun a call waits for the others, without a limit. So the
//           caller first finds out on the host whether all members have begun the call, and only
//           then calls finish(). If one does not come, abort() ends the wait of this process's
//           devices; each process aborts its own.
//   Lost    If a process ends in the midst of a call, the devices of the others are left waiting,
//           though all have begun it. So in a group that spans processes a step is good only when
//           settle() has returned, and a process that learns of a lost one calls abort().
//   Thread  a member is used by one thread at a time, that of its opened device; abort() may be
//           called from any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/reduce_op.h"
#include "core/tensor/tensor.h"

namespace cairn {

class Device;  // core/kernels/device.h

// Values in a member's device memory, to be replaced by the sum or the mean of all members'.
struct DeviceSum {
  ReduceOp op = ReduceOp::kSum;  // of float32, int32, int64; a mean of float32 only
  DType dtype = DType::kFloat32;
  std::int64_t elements = 0;
  std::byte* values = nullptr;
  std::shared_ptr<const void> owner;  // keeps `values` valid until the call has ended
};

class DeviceMember {
 public:
  // Aborts, if calls have begun that were not finished.
  virtual ~DeviceMember() = default;
  // Begins a call, behind all work of `opened` so far, and returns at once. The values must not be
  // touched before the call is finished.
  //   opened  what the member's device opened (Device::open()), the same in all calls.
  //   Errors  Internal: the device failed.
  virtual void begin(Device& opened, std::vector<DeviceSum> sums) = 0;
  // Finishes the oldest unfinished call, which all members must have begun: work that is enqueued
  // on `opened` from now on finds the sums.
  //   Errors  Internal: a device or a link failed.
  virtual void finish(Device& opened) = 0;
  // If the group spans processes, returns when the device has ended all calls, so that no process
  // that is lost from then on can spoil their sums; otherwise returns at once. Every call must have
  // been finished before.
  //   Errors  Aborted: the group was aborted before that. Internal: a device or a link failed.
  virtual void settle() = 0;
  // Ends what the devices of this process's members wait for; values of calls that are not settled
  // are then of any contents. Every later call of these members raises Aborted.
  virtual void abort() noexcept = 0;
};

// A device's means to sum in a group that spans processes.
struct DeviceSumMeans {
  std::string by;       // "by NCCL 2.28.3", the same in all processes of a group; empty: nothing
  std::string why_not;  // where `by` is empty, the reason
  std::string chip;     // identifies the device among those of all machines
};

// The ranks that a process's devices have in a group that spans processes.
struct DeviceGroupPlace {
  int size = 0;         // devices of all processes
  int first = 0;        // the rank of the first one here; the others follow
  std::string id;       // of Device::new_group_id(), one for all processes; empty: one process
  Duration timeout{0};  // for connecting, and for NCCL to take a call
  bool spans() const { return !id.empty(); }
};

struct DeviceGroup {
  std::vector<std::unique_ptr<DeviceMember>> members;  // by replica; empty: there is no such group
  // "by NCCL 2.27.7", or why there is none: "replicas share gpu:0".
  std::string text;
};

// Why no such group can be of these devices, whatever sums there; empty: nothing is in the way.
std::string obstacle_to_sums(std::span<Device* const> devices);

// `devices`: of the replicas of this process, by their numbers. With a place that spans processes
// it returns when all processes have joined; all make the call, or those that do wait.
//   Errors  Internal: a device failed, or they could not be connected. DeadlineExceeded: not within
//           the place's timeout.
DeviceGroup join_devices(std::span<Device* const> devices, const DeviceGroupPlace& place = {});

}  // namespace cairn
