// Declarations that the files of elementwise operations share.
#pragma once
#include "core/kernels/cpu/elementwise.h"

namespace cairn {

// Casts between all dtypes of fixed size. A float becomes an integer by truncation, saturated, and
// a NaN becomes 0; anything that is not zero is true.
BlockOp find_cast(DType from, DType to);

}  // namespace cairn
