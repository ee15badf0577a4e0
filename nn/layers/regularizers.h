// Regularizers: terms of the loss that keep weights or outputs small, as options of layers.
//
//   nn::Dense tower({.units = 64, .kernel_regularizer = nn::l2(1e-4f)});
//
// A layer adds its terms at each call, by add_loss() (nn/losses/added_losses.h): without a
// collector they have no effect.
#pragma once
#include <functional>
#include <string>

#include "core/graph/array.h"

namespace cairn {
class Variable;
}

namespace cairn::nn {

// From weights or outputs of any shape to a float32 scalar. Empty: none.
using Regularizer = std::function<Array(const Array&)>;

// strength · sum(|x|), strength · sum(x²), and the sum of both.
//   Errors  InvalidArgument: a strength below 0, or not finite.
Regularizer l1(float strength = 0.01f);
Regularizer l2(float strength = 0.01f);
Regularizer l1_l2(float l1 = 0.01f, float l2 = 0.01f);

// ---- for layers ----
//
// Adds the term of a variable that was read as `value`, once for each collector.
void add_weight_loss(const Regularizer& regularizer, const Variable& variable, const Array& value);
// Adds the term of what `layer` gives in this call, divided by the number of `examples`, a scalar
// of any number type; by the size of `y`'s axis 0 if it is undefined. Each replica has the term of
// its own part of the batch.
void add_activity_loss(const Regularizer& regularizer, const std::string& layer, const Array& y,
                       const Array& examples = {});

}  // namespace cairn::nn
