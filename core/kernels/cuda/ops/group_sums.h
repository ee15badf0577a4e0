// A CUDA device's member of a group of devices (core/kernels/device_group.h): the sums run on a
// stream of their own, so that what the replica computes meanwhile goes on beside them.
#pragma once
#include <cstdint>
#include <memory>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/device_group.h"

namespace cairn::cuda {

// An opened CUDA device is a QueueOwner too, which is how a member finds its queue.
class QueueOwner {
 public:
  virtual Queue& queue() = 0;

 protected:
  ~QueueOwner() = default;
};

enum class SumReach : std::uint8_t { kThisProcess, kProcesses };  // where the members are

// `member`: of a group that the drivers made. The driver outlives it.
std::unique_ptr<DeviceMember> make_device_member(Driver& driver, std::unique_ptr<SumMember> member,
                                                 SumReach reach);

}  // namespace cairn::cuda
