// DeviceGroup: devices of one process that sum values where they lie, so that what replicas reduce
// need not pass through the host's memory.
//
// Each replica has a member. All members make the same calls in the same order, and the host does
// not wait for the devices: begin() enqueues the sums behind the work that makes the values, and
// they are summed while the device goes on with other work.
//
//   Order   of summation is the devices' own: another one than the host's, the same for equal
//           devices, links and sizes, so that a run repeats on one machine. All members end with
//           the same bits.
//   Failure A device whose member has begun a call waits for the others, without a limit. So
//           whoever drives the members finds out on the host whether all have begun it, and only
//           then calls finish(); where one does not come, abort() ends what the devices wait for.
//   Thread  a member is used by one thread at a time, that of its opened device; abort() may be
//           called from any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  // Of the oldest call that is not finished, which all members have begun: what is enqueued on
  // `opened` from now on finds the sums.
  //   Errors  Internal: a device or a link failed.
  virtual void finish(Device& opened) = 0;
  // Ends what the devices of all members wait for; values of calls that are not finished are then
  // of any contents. Every later call of every member raises Aborted.
  virtual void abort() noexcept = 0;
};

struct DeviceGroup {
  std::vector<std::unique_ptr<DeviceMember>> members;  // by replica; empty: there is no such group
  // "by NCCL 2.27.7", or why there is none: "replicas share gpu:0".
  std::string text;
};

// `devices`: of the replicas, by their numbers.
//   Errors  Internal: a device failed.
DeviceGroup join_devices(std::span<Device* const> devices);

}  // namespace cairn
