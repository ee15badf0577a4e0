// StepReads: which rows each wave of a run reads, and where they land.
//
//   reads.bring_ids(wave);                        // on a device with memory of its own
//   std::span<Read> asked = reads.ask(wave);      // ... the store fills them ...
//   reads.take_in(wave);                          // now every reader of the wave has its value
//
// The ids of all reads of one variable in a wave are joined, so that a row is asked for once,
// however often it is used, and each distinct row is dealt out to all who asked for it. What the
// device serves from its own memory is not asked for.
//   Errors  ask(): InvalidArgument: an id outside its variable, or ids that a check of numerics has
//           stopped.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <span>

#include "core/exec/device_step.h"
#include "core/exec/numeric_checks.h"
#include "core/exec/run_values.h"
#include "core/rows/variable_store.h"

namespace cairn {

class StepReads {
 public:
  // `device` is null where it keeps no variables.
  StepReads(RunValues& values, const NumericChecks& checks, DeviceStep* device)
      : values_(values), checks_(checks), device_(device) {}

  // Begins to copy the ids that ask() looks at to the host.
  void bring_ids(std::size_t wave);
  // Empty: nothing is to be asked of the store. Valid until take_in().
  std::span<Read> ask(std::size_t wave);
  // The store has filled what was asked for.
  void take_in(std::size_t wave);

 private:
  bool lends() const { return device_ != nullptr && device_->reads.lends(); }
  void require_ids(const ReadGroup& group) const;
  void request(const ReadAt& read);
  void verify(const ReadAt& read) const;
  void expand(const ReadAt& read);

  RunValues& values_;
  const NumericChecks& checks_;
  DeviceStep* const device_;
};

// Adds the ids in the host's memory to those that are to be made distinct.
void add_ids(UniqueIds& ids, const TensorType& type, const std::byte* data);
// Makes them distinct, of `nodes` that read or update one variable. An id is verified before it is
// used: from here on it is an index.
//   Errors  InvalidArgument: it is outside of the variable.
void find_ids(UniqueIds& ids, const RunValues& values, std::span<const std::int32_t> nodes);

}  // namespace cairn
