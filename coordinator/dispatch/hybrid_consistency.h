// HybridConsistency: how the lanes of HybridStrategy go together. That strategy alone sets it; a
// program cannot, so that it is no part of Consistency's public interface.
//
// The workers take steps together, in rounds, and all-reduce the gradients of mirrored variables;
// updates of tables are applied as they arrive.
#pragma once
#include "coordinator/cluster/consistency.h"

namespace cairn {

struct HybridConsistency {
  static Consistency make() {
    Consistency made = Consistency::synchronous();
    made.mirrors_ = true;
    return made;
  }
  static bool is(const Consistency& consistency) { return consistency.mirrors_; }
};

}  // namespace cairn
