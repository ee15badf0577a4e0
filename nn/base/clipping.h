// Gradient clipping, on dense arrays and on sparse gradients alike.
//
// The norm of a sparse gradient is that of its rows as they stand: rows of equal ids count one by
// one, as in the reference, although their sum is what is applied. With several replicas in sync a
// dense gradient is clipped when it has been summed over them, and the rows of a sparse one count
// on all of them.
#pragma once
#include <optional>
#include <vector>

#include "core/graph/function.h"

namespace cairn::nn {

struct ClippingOptions {
  std::optional<float> clipnorm = {};   // each gradient's norm at most this
  std::optional<float> clipvalue = {};  // each element within ± this
  // the norm over all gradients of the step at most this
  std::optional<float> global_clipnorm = {};
};

// Elements below `low` become `low`, those above `high` become `high`.
Array clip_by_value(const Array& x, float low, float high);
Array clip_by_norm(const Array& x, float norm);  // x · norm / max(|x|, norm)
// The square root of the sum of all elements' squares; at least one array.
Array global_norm(const std::vector<Array>& arrays);
std::vector<Array> clip_by_global_norm(const std::vector<Array>& arrays, float norm);

// InvalidArgument: more than one of clipnorm and global_clipnorm, or one not above 0.
void verify(const ClippingOptions& options);
// In the reference's order: clipvalue, clipnorm, global_clipnorm.
std::vector<VariableGradient> clip(std::vector<VariableGradient> gradients,
                                   const ClippingOptions& options);

}  // namespace cairn::nn
