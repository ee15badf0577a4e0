// Computing at once, outside of a traced function.
//
// Expressions of constants need nobody. A variable's reads and updates go to the runtime of the
// strategy that made it: as a small function without arguments, so that eager use and training take
// the same path.
#pragma once
#include <vector>

#include "core/graph/function.h"

namespace cairn {

class EagerRuntime {
 public:
  virtual ~EagerRuntime() = default;
  // Runs a function without arguments and iterators, whose variables are this runtime's own, and
  // returns its outputs. The function is fresh and seldom seen again: its bytes and hash are empty.
  //   Errors  those of the run.   Thread  as the strategy says.
  virtual std::vector<Tensor> run_now(const ConcreteFunction& function) = 0;
};

}  // namespace cairn
