// An operation for benchmarks, which no program needs: it is not among the public ones of ops.h.
#pragma once
#include "core/graph/array.h"

namespace cairn {

// The value, after so many seconds (0 to 1) in which the thread that computes sleeps: it stands in
// the place of arithmetic where what lies around it is measured. float32; the gradient passes at
// once.
Array wait_for(const Array& x, double seconds);  // attribute seconds

}  // namespace cairn
