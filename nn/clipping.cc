// Recorded operations, so clipping runs in the step on the worker, before gradients of equal ids
// are summed and sent.
#include "nn/clipping.h"

#include <cmath>

#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

void check_positive(const char* name, const std::optional<float>& value) {
  if (value && !(*value > 0 && std::isfinite(*value)))
    throw InvalidArgumentError(str(name, " must be above 0 and finite, got ", *value));
}

// What is clipped: the rows of a sparse gradient, or the dense array.
Array& values(VariableGradient& gradient) {
  return gradient.is_sparse() ? gradient.sparse.rows : gradient.dense;
}

}  // namespace

Array clip_by_value(const Array& x, float low, float high) {
  return minimum(maximum(x, Array(low)), Array(high));
}

// norm / max(|x|, norm) is 1 for what is short enough, so no branch is recorded, and no division by
// 0 happens, since norm is above 0.
Array clip_by_norm(const Array& x, float norm) {
  return x * (Array(norm) / maximum(sqrt(sum(square(x))), Array(norm)));
}

Array global_norm(const std::vector<Array>& arrays) {
  if (arrays.empty()) throw InvalidArgumentError("global_norm wants at least one array");
  Array total = sum(square(arrays[0]));
  for (std::size_t i = 1; i < arrays.size(); ++i) total = total + sum(square(arrays[i]));
  return sqrt(total);
}

std::vector<Array> clip_by_global_norm(const std::vector<Array>& arrays, float norm) {
  Array scale = Array(norm) / maximum(global_norm(arrays), Array(norm));
  std::vector<Array> clipped;
  for (const Array& array : arrays) clipped.push_back(array * scale);
  return clipped;
}

void verify(const ClippingOptions& options) {
  if (options.clipnorm && options.global_clipnorm)
    throw InvalidArgumentError("give clipnorm or global_clipnorm, not both");
  check_positive("clipnorm", options.clipnorm);
  check_positive("clipvalue", options.clipvalue);
  check_positive("global_clipnorm", options.global_clipnorm);
}

std::vector<VariableGradient> clip(std::vector<VariableGradient> gradients,
                                   const ClippingOptions& options) {
  for (VariableGradient& gradient : gradients) {
    Array& value = values(gradient);
    if (options.clipvalue) value = clip_by_value(value, -*options.clipvalue, *options.clipvalue);
    if (options.clipnorm) value = clip_by_norm(value, *options.clipnorm);
  }
  if (!options.global_clipnorm || gradients.empty()) return gradients;
  std::vector<Array> all;
  for (VariableGradient& gradient : gradients) all.push_back(values(gradient));
  all = clip_by_global_norm(all, *options.global_clipnorm);
  for (std::size_t i = 0; i < gradients.size(); ++i) values(gradients[i]) = all[i];
  return gradients;
}

}  // namespace cairn::nn
