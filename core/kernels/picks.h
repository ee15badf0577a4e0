// The shapes of lookups by id and of ragged rows, for the kernels of every device.
#pragma once
#include <cstdint>

#include "core/base/error.h"
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

// [examples, columns, inner] out of [rows, inner]: ragged examples side by side, cut or filled.
struct DenseRows {
  std::int64_t examples, columns, rows, inner;
};
inline DenseRows dense_rows_of(const Shape& dense, const Shape& values) {
  DenseRows made{dense[0], dense[1], values[0], 1};
  for (int i = 1; i < values.rank(); ++i) made.inner *= values[i];
  return made;
}

// x is [outer, n, inner] about an axis.
struct Along {
  std::int64_t outer = 1, n = 0, inner = 1;
};
inline Along along_axis(const Shape& x, std::int64_t axis) {
  Along made;
  made.n = x[static_cast<int>(axis)];
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) (i < axis ? made.outer : made.inner) *= x[i];
  return made;
}

// Row splits come from data. Checked once, in host memory, so that loops need not look.
inline void check_splits(const std::int64_t* splits, std::int64_t examples, std::int64_t rows) {
  if (splits[0] != 0 || splits[examples] != rows)
    throw InvalidArgumentError(str("row_splits run from ", splits[0], " to ", splits[examples],
                                   "; there are ", rows, " rows"));
  for (std::int64_t e = 0; e < examples; ++e)
    if (splits[e + 1] < splits[e])
      throw InvalidArgumentError(str("row_splits descend after example ", e));
}

}  // namespace cairn
