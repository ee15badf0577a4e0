// StaticHashTable: a fixed dictionary from keys to values, to be used within functions.
//
//   StaticHashTable codes({keys, values, default_value});
//   Array code = codes.lookup(features["country"]);
//
// The table never changes, so it is no variable but a constant of each function that uses it. A
// worker that is sent the function has its own copy, and looks up without a request.
#pragma once
#include <cstdint>

#include "core/graph/array.h"
#include "core/tensor/tensor.h"

namespace cairn {

class StaticHashTable {
 public:
  struct Contents {
    Tensor keys;           // int64 or string [n]
    Tensor values;         // [n], of any dtype but string
    Tensor default_value;  // scalar, of the values' dtype: what a key that is not there gives
  };
  //   Errors  InvalidArgument: other dtypes or shapes. FailedPrecondition: a key that is there
  //           twice, with two values (the same pair may repeat).
  explicit StaticHashTable(Contents contents);

  // Keys of any shape -> values of that shape. No gradient passes.
  //   Errors  InvalidArgument: keys of another dtype.
  //   Cost    a binary search per key; each function that looks up holds keys and values once.
  //   Thread  any.
  Array lookup(const Array& keys) const;
  std::int64_t size() const { return size_; }

 private:
  std::int64_t size_ = 0;
  Array keys_;    // ascending, distinct
  Array values_;  // beside them, and at the end the default
};

}  // namespace cairn
