// What all forms of a request are decoded to, and all forms of an answer are made from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::serving {

// What a codec must know of a model. A ragged column NAME is two columns of `input`: "NAME" and
// "NAME/row_splits" (core/tensor/element.h); clients send and name the first alone.
struct Signature {
  std::string model;  // its name in the server
  ElementSpec input;
  std::vector<ColumnSpec> outputs;  // none without a name
};

// A request's examples, verified: the columns of Signature::input in that order, whose leading
// dimension is `examples` (of ragged ones, of the row splits less one).
struct Examples {
  Element columns;
  std::int64_t examples = 0;
};

// Bounds on what a request may hold, looked at before memory is taken for it.
struct DecodeLimits {
  std::int64_t examples_max = 65'536;
  std::size_t elements_max = std::size_t{64} << 20;  // of all columns together
  bool allow_nan = false;                            // NaN and infinities in numbers
};

}  // namespace cairn::serving
