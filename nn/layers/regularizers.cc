#include "nn/layers/regularizers.h"

#include <cmath>

#include "core/graph/ops.h"
#include "core/graph/variable.h"
#include "nn/base/layer.h"
#include "nn/losses/added_losses.h"
#include "nn/losses/losses.h"

namespace cairn::nn {
namespace {

void check_strength(const char* which, float strength) {
  if (!(strength >= 0) || !std::isfinite(strength))
    throw InvalidArgumentError(
        str(which, ": the strength must be at least 0 and finite, got ", strength));
}

}  // namespace

Regularizer l1(float strength) {
  check_strength("l1", strength);
  return [strength](const Array& x) { return l1_regularization(x, strength); };
}

Regularizer l2(float strength) {
  check_strength("l2", strength);
  return [strength](const Array& x) { return l2_regularization(x, strength); };
}

Regularizer l1_l2(float l1, float l2) {
  check_strength("l1_l2", l1);
  check_strength("l1_l2", l2);
  return [l1, l2](const Array& x) { return l1_regularization(x, l1) + l2_regularization(x, l2); };
}

void add_weight_loss(const Regularizer& regularizer, const Variable& variable, const Array& value) {
  if (regularizer) add_loss(variable.name() + "/regularizer", regularizer(value));
}

// Two calls of one layer are two terms, so the key names the call: by its result, which the term
// keeps alive as long as the collector has the key.
void add_activity_loss(const Regularizer& regularizer, const std::string& layer, const Array& y,
                       const Array& examples) {
  if (!regularizer) return;
  const Array count = to_float(examples.defined() ? examples : dim_size(y, 0));
  add_loss(str(layer, "/activity_regularizer/", static_cast<const void*>(y.node().get())),
           regularizer(y) / maximum(count, Array(1.0f)));
}

}  // namespace cairn::nn
