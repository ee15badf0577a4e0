// Shared by the update rules' kernels of all devices: the numbers that an update multiplies by, and
// which dtypes a rule can change.
#pragma once
#include "core/graph/update_rule.h"

namespace cairn {

// The numbers of one update, made from the rule's constants and what comes with the update. Those
// that depend on the step, such as bias corrections, are computed in double and rounded once. A
// rule reads the fields that its arithmetic names; the others are 0.
struct RuleRates {
  float rate = 0;        // of learning, bias corrected where the rule does that
  float moment = 0;      // Nadam: the rate of m, where `rate` is that of the gradient
  float correction = 0;  // Nadam: of v's bias
  float share_1 = 0;     // of a new gradient in the first (or only) moving average
  float share_2 = 0;     // the same of the second one
  float beta_2 = 0;      // Adamax
  float momentum = 0;
  float epsilon = 0;
  // FTRL. power = -learning_rate_power; l2 has beta's part in it.
  float power = 0, l1 = 0, l2 = 0, shrinkage = 0;
  float t = 0;  // of a custom rule: RuleInputs::t
};

// Assignments have none: all fields are 0. Thread: any.
RuleRates fold_rates(const UpdateRule& rule, const RuleInputs& inputs);

// InvalidArgument: kernels of the kind do not change variables of this dtype. Assign serves every
// dtype, its kin float32 and most of them int32, int64 and uint8; optimizers want float32.
void verify_rule_dtype(RuleKind kind, DType dtype);

}  // namespace cairn
