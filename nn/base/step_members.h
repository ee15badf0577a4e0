// StepMembers: how many runs of a traced function make one step together without being replicas in
// sync: the members of a round on parameter servers, whose updates are summed where the variables
// are. A layer that updates variables by itself divides by their number, as it does by that of
// replicas.
//
// Model opens it by itself.
//   Thread  each thread has its own.
#pragma once
#include <cstdint>

namespace cairn::nn {

class StepMembers {
 public:
  explicit StepMembers(std::int64_t members);
  ~StepMembers();
  StepMembers(const StepMembers&) = delete;
  StepMembers& operator=(const StepMembers&) = delete;

 private:
  const std::int64_t before_;
};

// The number of members in the innermost StepMembers of this thread; 1 without one.
std::int64_t step_members();

}  // namespace cairn::nn
