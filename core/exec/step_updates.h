// StepUpdates: what each wave of a run changes: gradients as computed become updates that a store
// applies, and the device's own are set apart.
//
//   updates.bring(wave);              // on a device with memory of its own
//   updates.gather(wave);             // then pushed() is the store's part
//
// Rows of equal ids become one row as equal_ids() says, mostly their sum, in ascending order of
// occurrence: equal inputs give equal bits. Updates that a failed check stops are left out.
//   Errors  gather(): InvalidArgument: an id outside its variable. Unimplemented: rows of a dtype
//           that has no sum.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/device_step.h"
#include "core/exec/numeric_checks.h"
#include "core/exec/run_values.h"
#include "core/rows/variable_store.h"

namespace cairn {

class StepUpdates {
 public:
  // `memory` outlives it. `device` is null where it keeps no variables.
  StepUpdates(RunValues& values, const NumericChecks& checks, StepMemory& memory,
              DeviceStep* device)
      : values_(values), checks_(checks), memory_(memory), device_(device) {}

  // Begins to copy what gather() reads to the host.
  void bring(std::size_t wave);
  // Makes the store's updates of the wave, and notes the device's (DeviceUpdates::add()).
  void gather(std::size_t wave);
  // Whether the wave's updates are to be announced first: all of them in their order, the device's
  // without a value. Neither the device nor the store is to make those that are left out.
  bool are_announced() const;
  std::span<const Update> announced() const { return values_.space().updates; }
  void leave_out(const std::vector<bool>& left_out);
  // The store's alone. Valid until the next gather().
  std::span<Update> pushed();
  // Whether the instruction's only reader is an update that reads the instruction's input instead.
  bool is_read_within(const BoundWave& wave, const Instruction& instruction) const;

 private:
  bool made_here(const BoundUpdate& update) const {
    return device_ != nullptr && device_->updates.makes(update);
  }
  void begin_sums(BoundWave& wave);
  void bring(const BoundUpdate& update);
  Update make(BoundUpdate& update);
  void find_own_ids(BoundUpdate& update);
  Tensor dense_value(std::int32_t update);
  Tensor sum_rows(const BoundUpdate& update, const UniqueIds& ids, const UpdateRule& rule);
  Tensor memory_for_sums(const BoundUpdate& update, const TensorType& type);

  RunValues& values_;
  const NumericChecks& checks_;
  StepMemory& memory_;
  DeviceStep* const device_;
};

}  // namespace cairn
