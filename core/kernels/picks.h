// The shapes of lookups by id and of ragged rows, for the kernels of every device.
#pragma once
#include <cstdint>

#include "core/tensor/tensor.h"

namespace cairn {

// x is [outer, bound, inner], ids [n], picked [outer, n, inner].
struct Picks {
  std::int64_t outer = 1, bound = 0, n = 0, inner = 1;
};

inline Picks picks_of(const Shape& x, const Shape& ids, int axis) {
  Picks made;
  made.bound = x[axis];
  made.n = ids.elements();
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) (i < axis ? made.outer : made.inner) *= x[i];
  return made;
}

// combiner: 0 sum, 1 mean, 2 divided by the square root of the count.
struct Ragged {
  std::int64_t examples, rows, dim, combiner;
};

}  // namespace cairn
