// Update rules that a program might make itself.
#pragma once
#include <vector>

#include "core/graph/custom_rule.h"
#include "core/graph/ops.h"

namespace cairn::testing {

// Adam on given rows, as RuleKind::kLazyAdam has it.
inline UpdateRule own_adam() {
  return custom_rule("own_adam", {{"m", 0}, {"v", 0}}, [](const RuleInput& in) {
    const Array m = 0.9f * in.slots[0] + 0.1f * in.gradient,
                v = 0.999f * in.slots[1] + 0.001f * square(in.gradient);
    const Array rate = in.learning_rate * sqrt(1.0f - pow(0.999f, in.t)) / (1.0f - pow(0.9f, in.t));
    return RuleOutput{in.value - rate * m / (sqrt(v) + 1e-7f), {m, v}};
  });
}

// Rules with every kind of operation: comparisons, casts, scalars, results that are inputs.
inline std::vector<UpdateRule> own_rules() {
  return {own_adam(),
          custom_rule("sign", {},
                      [](const RuleInput& in) {
                        return RuleOutput{in.value - in.learning_rate * sign(in.gradient)};
                      }),
          custom_rule("bounded", {{"last", 0.5f}, {"count", 0}}, [](const RuleInput& in) {
            const Array large = abs(in.gradient) > 0.5f;
            const Array step = where(large, 0.5f * sign(in.gradient), tanh(in.gradient));
            return RuleOutput{
                in.value - in.learning_rate * (step + 0.25f * in.slots[0]),
                {in.gradient, in.slots[1] + cast(large, DType::kFloat32) / (1.0f + in.t)}};
          })};
}

}  // namespace cairn::testing
