// DeviceUpdates: the updates of a run that its device makes by itself, of variables that lie there;
// and rows of gradients that it sums before they leave it.
//
//   if (updates.makes(one)) updates.add(one);     // for each of a wave's updates, in their order
//   updates.make(wave);                           // all that were added
//
// Updates of a wave go to the device together. An update is the device's if the store lends the
// variable and the update's rule is the one that has its slots; one that replicas share is the
// store's.
//   Errors  make(): InvalidArgument: a learning rate that the rule refuses; then that update does
//           not count.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/exec/device_reads.h"

namespace cairn {

class DeviceUpdates {
 public:
  DeviceUpdates(RunValues& values, DeviceReads& reads) : values_(values), reads_(reads) {}

  bool makes(const BoundUpdate& update) const { return held_for(update) != nullptr; }

  void clear() { values_.space().made.updates.clear(); }
  void add(BoundUpdate& update) { values_.space().made.updates.push_back(&update); }
  bool has_any() const { return !values_.space().made.updates.empty(); }
  // Not made after all: by the order in which they were added.
  void leave_out(const std::vector<bool>& left_out);
  void make(BoundWave& wave);

  // The two halves of make(). A recorded run repeats the second one alone.
  void send_rates(std::span<BoundUpdate> updates);
  void enqueue(BoundWave& wave);

  // Whether the device can sum the rows of an update that it does not make: those of lookups that
  // it was dealt in this run.
  bool sums(const BoundUpdate& update) const;
  // Sums the rows of these updates of the wave, each row's in a fixed order, and begins to copy the
  // sums to the host (HostCopies::take()).
  void begin_sums(BoundWave& wave, std::span<BoundUpdate* const> updates);

 private:
  DeviceRows::Held* held_for(const BoundUpdate& update) const;
  bool is_sparse(std::int32_t update) const;
  bool is_value_read(std::int32_t update) const;
  const UpdateRule& rule_of(const BoundUpdate& update) const;
  void enqueue_one(BoundWave& wave, BoundUpdate& update);
  void enqueue_together(BoundWave& wave, std::span<BoundUpdate* const> updates);
  RowKernels::UpdateRun run_of(BoundUpdate& update);
  RowKernels::UpdateRun values_of(const BoundUpdate& update, std::int64_t dim) const;
  RowKernels::UpdateOf update_of(const BoundUpdate& update) const;
  std::int64_t rows_here(const BoundUpdate& update) const;
  TensorType ids_type(std::int32_t update) const;
  const std::byte* ids_here(BoundUpdate& update);
  const std::byte* places_of(BoundUpdate& update, DeviceRows::Held& held);
  void prepare_sums(SumsTogether& sums, std::span<BoundUpdate* const> updates);

  RunValues& values_;
  DeviceReads& reads_;
};

}  // namespace cairn
