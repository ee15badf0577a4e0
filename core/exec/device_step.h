// DeviceStep: what a run's device does by itself, because it keeps variables in its memory
// (Device::row_kernels()). A step on any other device has none, and asks its store for everything.
//
// A run whose values the host need not look at never leaves the device: the second of its kind is
// recorded while it is enqueued, and from then on replayed.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/exec/device_reads.h"
#include "core/exec/device_updates.h"
#include "core/exec/run_values.h"

namespace cairn {

class DeviceStep {
 public:
  explicit DeviceStep(RunValues& values) : reads(values), updates(values, reads), values_(values) {}

  DeviceReads reads;
  DeviceUpdates updates;

  // Makes the whole run as it was recorded, recording it first if necessary. False: it is still to
  // be made wave by wave, as the first one always is, because it prepares the kernels. `compute`
  // enqueues the instructions of the wave of that number.
  using Compute = std::function<void(std::size_t wave)>;
  bool run_recorded(const Compute& compute);

 private:
  bool may_record() const;
  bool rate_is_given(std::int32_t update) const;
  std::vector<const std::byte*> rows_here() const;
  void enqueue_all(const Compute& compute);

  RunValues& values_;
};

}  // namespace cairn
