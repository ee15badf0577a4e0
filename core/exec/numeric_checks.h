// NumericChecks: the checks of numerics of one run, which of them has failed first, and what must
// not be made because of it.
//
// A check that fails stops what is computed from the checked value, or from the check's result, and
// nothing else; through variables too: a read after an update that is not made would find what it
// should not. The message names what the first check found, and the first variable whose value or
// update is not finite, as far as the run has come when it is described.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/run_values.h"

namespace cairn {

class DeviceStep;

class NumericChecks {
 public:
  // `device`: where the run's variables may lie (null: in their store).
  NumericChecks(RunValues& values, const DeviceStep* device) : values_(values), device_(device) {}

  // Looks at the elements that the instruction checks.
  void look_at(const Instruction& check);
  bool failed() const { return failed_ != nullptr; }
  // Whether the node must not be made, or its value not be used.
  bool stops(std::int32_t node) const {
    return failed_ != nullptr && failed_->stopped[static_cast<std::size_t>(node)];
  }
  // The same of the ids of a read: one that is stopped for its variable's sake alone may be made.
  bool stops_ids_of(std::int32_t read) const;
  // Once, when the compute of `wave` is done: more is known by then than when the check failed.
  void describe(std::size_t wave);
  [[noreturn]] void raise() const;  // InvalidArgument, with what describe() has found

 private:
  struct Failed {
    std::int32_t node = 0;      // the first that failed
    float value = 0;            // the offending value
    std::string message;        // empty: not known yet
    std::vector<bool> stopped;  // by node: depends on this check, or on another that failed
  };
  void fail(std::int32_t check, const float* values, std::int64_t count);
  void stop_dependents(std::int32_t check);
  std::string blame(std::size_t wave);

  RunValues& values_;
  const DeviceStep* const device_;
  std::unique_ptr<Failed> failed_;  // null: every check so far has passed
};

}  // namespace cairn
