// StepReductions: what a run reduces with the other replicas, in the host's memory or on their
// devices.
//
// Reductions begin in the order of the waves, each wave's with one ticket, counted from 0, and end
// in that order. On a device with memory of its own the shares are copied out (bring_shares()), and
// what they have come to is copied in. With a member of a group of devices (sum_on()) they stay
// where they are, and the devices sum them.
//   Errors  begin(): InvalidArgument: a check of numerics stops a share.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/exec/all_reduce_buffer.h"
#include "core/exec/numeric_checks.h"
#include "core/exec/run_values.h"
#include "core/kernels/device_group.h"

namespace cairn {

class StepReductions {
 public:
  StepReductions(RunValues& values, const NumericChecks& checks)
      : values_(values), checks_(checks) {}

  void sum_on(DeviceMember& member) { member_ = &member; }
  // Begins to copy the shares of the wave to the host.
  void bring_shares(std::size_t wave);
  // The list is valid until let_go() of the values, what it points to until the ticket is awaited.
  std::span<const AllReduceBuffer> begin(std::size_t wave);
  std::int32_t last_ticket() const { return begun_ - 1; }
  // The reductions of `ticket`, and of all before it, have ended.
  void end_up_to(std::int32_t ticket);
  bool under_way() const { return begun_ > ended_; }

 private:
  void begin_on_device(std::span<AllReduceBuffer> reductions);
  void take_in(std::int32_t ticket);

  RunValues& values_;
  const NumericChecks& checks_;
  std::int32_t begun_ = 0, ended_ = 0;  // tickets
  // If the device has its own memory: what is reduced, by ticket. Empty once it was copied back in.
  std::vector<std::vector<std::pair<std::int32_t, Tensor>>> shares_on_host_;
  DeviceMember* member_ = nullptr;  // null: what is reduced meets in the host's memory
};

}  // namespace cairn
