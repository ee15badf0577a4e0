// Recorded operations, so clipping runs in the step on the worker, before gradients of equal ids
// are summed and sent.
#include "nn/base/clipping.h"

#include <cmath>

#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

void check_positive(const char* name, const std::optional<float>& value) {
  if (value && !(*value > 0 && std::isfinite(*value)))
    throw InvalidArgumentError(str(name, " must be above 0 and finite, got ", *value));
}

// The values to clip: the rows of a sparse gradient, or the dense array.
Array& values(VariableGradient& gradient) {
  return gradient.is_sparse() ? gradient.sparse.rows : gradient.dense;
}

// The sum over all replicas: a dense gradient is summed already, a sparse one has rows per replica.
Array sum_of_squares(VariableGradient& gradient) {
  const Array own = sum(square(values(gradient)));
  return gradient.is_sparse() ? sum_over_replicas(gradient.variable, own) : own;
}

// 1 for what is short enough, so no branch is recorded, and no division by 0 happens, since `most`
// is above 0.
Array shrinking(const Array& norm, float most) { return Array(most) / maximum(norm, Array(most)); }

}  // namespace

Array clip_by_value(const Array& x, float low, float high) {
  return minimum(maximum(x, Array(low)), Array(high));
}

Array clip_by_norm(const Array& x, float norm) { return x * shrinking(sqrt(sum(square(x))), norm); }

Array global_norm(const std::vector<Array>& arrays) {
  if (arrays.empty()) throw InvalidArgumentError("global_norm wants at least one array");
  Array total = sum(square(arrays[0]));
  for (std::size_t i = 1; i < arrays.size(); ++i) total = total + sum(square(arrays[i]));
  return sqrt(total);
}

std::vector<Array> clip_by_global_norm(const std::vector<Array>& arrays, float norm) {
  Array scale = shrinking(global_norm(arrays), norm);
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
    if (options.clipnorm)
      value = value * shrinking(sqrt(sum_of_squares(gradient)), *options.clipnorm);
  }
  if (!options.global_clipnorm || gradients.empty()) return gradients;
  Array total = sum_of_squares(gradients[0]);
  for (std::size_t i = 1; i < gradients.size(); ++i) total = total + sum_of_squares(gradients[i]);
  const Array scale = shrinking(sqrt(total), *options.global_clipnorm);
  for (VariableGradient& gradient : gradients) values(gradient) = values(gradient) * scale;
  return gradients;
}

}  // namespace cairn::nn
