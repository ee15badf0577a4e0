// The tensors that every form of a request is decoded to and every form of an answer is made from,
// and the bounds on them.
//   Thread  values without shared state; any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::serving {

// The part of a model that a codec must know. A ragged column NAME is two columns of `input`:
// "NAME" and "NAME/row_splits" (core/tensor/element.h). JSON of TensorFlow's form names the first
// alone, and has a list for each example; the Open Inference Protocol sends both as tensors.
struct Signature {
  std::string model;  // its name in the server
  ElementSpec input;
  std::vector<ColumnSpec> outputs;  // none without a name
};

// A request's examples, verified: the columns of Signature::input in that order, of types that
// these admit. The leading dimension of each is `examples`; that of row splits is one more, and
// that of a ragged column's values is the last of its splits.
struct Examples {
  Element columns;
  std::int64_t examples = 0;  // at least 1
};

// Bounds on what a request may hold, looked at before memory is taken for it.
struct DecodeLimits {
  std::int64_t examples_max = 65'536;
  // The elements of all columns together, and the bytes that they take as tensors. A string counts
  // as sizeof(std::string) and its length. While a request is decoded, up to three times as many
  // bytes are in use.
  std::size_t elements_max = std::size_t{64} << 20;
  std::size_t bytes_max = std::size_t{256} << 20;
  bool allow_nan = false;  // NaN and infinities in numbers
};

}  // namespace cairn::serving
