// The inside of a Workspace: the arena, and the plans bound to the shapes that this lane met
// lately.
#pragma once
#include <memory>
#include <vector>

#include "core/exec/bound_plan.h"
#include "core/exec/device_rows.h"
#include "core/exec/executor.h"
#include "core/exec/host_copies.h"
#include "core/kernels/device.h"

namespace cairn {

struct Workspace::State {
  // More than a lane's functions need unless shapes keep changing; then the oldest makes room.
  static constexpr std::size_t kBoundPlansMax = 16;

  // The plan bound to these inputs' shapes, from the cache or made now. Stays valid until the next
  // call.
  BoundPlan& bind(const std::shared_ptr<const Plan>& plan, const RunInputs& inputs);
  // At least `bytes`, 64-byte aligned. The handle keeps it alive while anything reads from it.
  const std::shared_ptr<std::byte>& arena(std::size_t bytes);

  explicit State(Device& of)
      : opened(of.open()),
        device(opened ? *opened : of),
        on_host(of.memory() == Device::Memory::kHost),
        host(device),
        rows(device.row_kernels() != nullptr ? std::make_unique<DeviceRows>(device) : nullptr) {}

  const std::unique_ptr<Device> opened;  // first: whatever is below may be the device's
  Device& device;
  const bool on_host;                             // its memory is the host's: nothing is copied
  HostCopies host;                                // of a device with memory of its own
  const std::unique_ptr<DeviceRows> rows;         // nullptr: the device keeps no variables
  bool busy = false;                              // one run at a time
  std::vector<std::unique_ptr<BoundPlan>> bound;  // least lately used first
  std::vector<std::int64_t> signature;
  std::shared_ptr<std::byte> memory;
  std::size_t memory_bytes = 0;
  // Scratch of the run in progress.
  std::vector<const std::byte*> pointers;  // by value
  std::vector<const std::byte*> call_inputs;
  std::vector<std::byte*> call_outputs;
  std::vector<Update> updates;
  // The reads and updates of variables that lie on the device.
  struct Rows {
    std::vector<std::int32_t> lookups;            // reads that the device makes: nodes
    std::vector<RowKernels::GatherRun> gathers;   // beside `lookups`
    std::vector<BoundUpdate*> updates, together;  // those that the device makes
    std::vector<RowKernels::UpdateRun> runs;      // beside `together`
  };
  Rows made;
  // The reads that the store serves because the device does not, and the groups that asked.
  std::vector<Read> asked;
  std::vector<std::size_t> asked_by;
  std::vector<std::byte> staging;  // rows on their way to a device with memory of its own
};

}  // namespace cairn
