// Layers without variables: Flatten and Dropout.
#pragma once
#include <cstdint>
#include <string>

#include "core/graph/array.h"
#include "nn/base/layer_name.h"

namespace cairn::nn {

// All axes behind the first one as one: [b, d...] -> [b, product of d]; [b] -> [b, 1].
//   Errors  InvalidArgument: a scalar, or a dimension other than the first is unknown.
class Flatten {
 public:
  explicit Flatten(std::string name = "") : name_(std::move(name), "flatten") {}
  Array operator()(const Array& x) const;
  const LayerName& layer_name() const { return name_; }

 private:
  LayerName name_;
};

// In training (nn/base/training_scope.h) each element is 0 with probability `rate`, else divided by
// 1 - rate; otherwise x itself. A step draws anew, and the same step that is run again draws the
// same (core/graph/ops_random.h).
//   Errors  InvalidArgument: a rate outside [0, 1); x not float32.
//   Source  Srivastava et al., JMLR 15 (2014).
class Dropout {
 public:
  explicit Dropout(float rate, std::uint64_t seed = 0, std::string name = "");
  Array operator()(const Array& x) const;
  const LayerName& layer_name() const { return name_; }

 private:
  float rate_;
  std::uint64_t seed_;
  LayerName name_;
};

}  // namespace cairn::nn
