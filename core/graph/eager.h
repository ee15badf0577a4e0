// The part of a strategy in reads and updates of the variables that it made: it computes them at
// once outside of a traced function, and gives them meaning where several replicas record them.
//
// Expressions of constants need no strategy. A variable's reads and updates outside of a function
// go to the runtime of the strategy that made it, as a small function without arguments, so that
// eager use and training take the same path.
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
  // How the replicas' changes are combined when they meet; kNone: each changes its own copy.
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
  // Each replica records the same function into a trace of its own; the ScopePlace says which
  // replica it is, and in which context. With one replica, values are as they are recorded.
  //
  // Returns the value of a read of `variable` in this context, given `own`, this replica's copy.
  //   Errors  InvalidArgument: copies must be combined, and the variable has no aggregation.
  virtual Array read_here(const Variable& variable, const Array& own);
  // Returns the change to record in this context for the change that was asked for.
  //   Errors  InvalidArgument, Unimplemented: the variable's aggregation does not allow it here.
  virtual VariableChange change_here(const Variable& variable, VariableChange change);
  // How many replicas bring a gradient each.
  //   Errors  FailedPrecondition: none does, this is the cross-replica context of several.
  virtual int gradients_here() const { return 1; }
};

}  // namespace cairn
