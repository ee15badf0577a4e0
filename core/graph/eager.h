// What the strategy that made a variable has a say in: how its reads and updates are computed at
// once, outside of a traced function, and what they mean where several replicas record them.
//
// Expressions of constants need nobody. A variable's reads and updates outside of a function go to
// the runtime of the strategy that made it: as a small function without arguments, so that eager
// use and training take the same path.
#pragma once
#include <vector>

#include "core/graph/function.h"

namespace cairn {

// A change of a variable, before it is recorded.
struct VariableChange {
  UpdateRule rule;
  bool sparse = false;
  Array value;  // the rows, if it is sparse
  // The value is the same on all replicas: a gradient that was summed already.
  bool of_all_replicas = false;
  // What the replicas' changes become when they meet; kNone: each of them changes what it has.
  Aggregation shares = Aggregation::kNone;
  // The replicas keep copies of the variable, and all make this change (GraphVariable::mirrored).
  bool mirrored = false;
};

class EagerRuntime {
 public:
  virtual ~EagerRuntime() = default;
  // Runs a function without arguments and iterators, whose variables are this runtime's own, and
  // returns its outputs. The function is fresh and seldom seen again: its bytes and hash are empty.
  //   Errors  those of the run.   Thread  as the strategy says.
  virtual std::vector<Tensor> run_now(const ConcreteFunction& function) = 0;

  // ---- several replicas in sync ----
  //
  // Each records the same function into a trace of its own, and the place of the scope tells for
  // which of them, and in which context. With one replica everything is what it is.
  //
  // What a read of `variable` gives here; `own` is what was recorded, of this replica's copy.
  //   Errors  InvalidArgument: copies that nothing says how to combine.
  virtual Array read_here(const Variable& variable, const Array& own);
  // What is recorded for a change.
  //   Errors  InvalidArgument, Unimplemented: the variable's aggregation does not allow it here.
  virtual VariableChange change_here(const Variable& variable, VariableChange change);
  // How many replicas bring a gradient each.
  //   Errors  FailedPrecondition: none does, this is the cross-replica context of several.
  virtual int gradients_here() const { return 1; }
};

}  // namespace cairn
