#include "core/kernels/rule_rates.h"

#include <cmath>

#include "core/base/error.h"

namespace cairn {
namespace {

// The share of a new gradient that enters a moving average: see RuleKind.
float share_of(float share, float decay) { return share != 0 ? share : 1 - decay; }

// 1 - beta^t: what a moving average that began at zero lacks after t steps.
double bias(float beta, std::int64_t t) {
  return 1 - std::pow(static_cast<double>(beta), static_cast<double>(t));
}

// Nadam's momentum warms up; at step t it is beta_1 (1 - 0.96^(decay t) / 2) (Dozat, 2016).
double nadam_momentum(double beta_1, double decay, double t) {
  return beta_1 * (1 - 0.5 * std::pow(0.96, decay * t));
}

// The product of the momenta of steps 1 to t. Below 2^-30, 1 less the product is 1 in float32,
// whatever follows; and once the warm-up is over, what follows is a power. So few steps are
// multiplied out, however large t is.
double nadam_product(double beta_1, double decay, std::int64_t t) {
  const double factor = std::pow(0.96, decay);
  double product = 1, warm_up = factor;
  for (std::int64_t i = 1; i <= t && product > 0x1p-30; ++i, warm_up *= factor) {
    if (warm_up < 0x1p-30) return product * std::pow(beta_1, static_cast<double>(t - i + 1));
    product *= beta_1 * (1 - 0.5 * warm_up);
  }
  return product;
}

RuleRates nadam_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  const auto t = static_cast<double>(in.t);
  const double now = nadam_momentum(c[0], c[3], t), next = nadam_momentum(c[0], c[3], t + 1);
  const double product = nadam_product(c[0], c[3], in.t);
  const double correction = 1 / (1 - std::pow(static_cast<double>(c[1]), t));
  return {.rate = static_cast<float>(in.learning_rate * (1 - now) / (1 - product)),
          .moment = static_cast<float>(in.learning_rate * next / (1 - product * next)),
          .correction = static_cast<float>(correction),
          .share_1 = 1 - c[0],
          .share_2 = 1 - c[1],
          .epsilon = c[2]};
}

RuleRates adam_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  const double alpha = in.learning_rate * std::sqrt(bias(c[1], in.t)) / bias(c[0], in.t);
  return {.rate = static_cast<float>(alpha),
          .share_1 = share_of(c[3], c[0]),
          .share_2 = share_of(c[4], c[1]),
          .epsilon = c[2]};
}

RuleRates adamax_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  return {.rate = static_cast<float>(in.learning_rate / bias(c[0], in.t)),
          .share_1 = share_of(c[3], c[0]),
          .beta_2 = c[1],
          .epsilon = c[2]};
}

// In the kinds without momentum, c[2] is not the momentum but a flag: where epsilon stands.
RuleRates rmsprop_rates(const UpdateRule& rule, const RuleInputs& in, float momentum) {
  const auto& c = rule.constants;
  return {.rate = in.learning_rate,
          .share_1 = share_of(c[3], c[0]),
          .momentum = momentum,
          .epsilon = c[1]};
}

RuleRates ftrl_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  return {.rate = in.learning_rate,
          .power = -c[0],
          .l1 = c[2],
          .l2 = c[3] + c[4] / (2 * in.learning_rate),
          .shrinkage = c[5]};
}

}  // namespace

RuleRates fold_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  switch (rule.kind) {
    case RuleKind::kAssign:
    case RuleKind::kAssignAdd:
    case RuleKind::kAssignSub:
    case RuleKind::kAssignMul:
    case RuleKind::kAssignDiv:
    case RuleKind::kAssignMin:
    case RuleKind::kAssignMax: return {};
    case RuleKind::kSgd: return {.rate = in.learning_rate};
    case RuleKind::kMomentum:
    case RuleKind::kMomentumTable: return {.rate = in.learning_rate, .momentum = c[0]};
    case RuleKind::kAdagrad:
    case RuleKind::kRowwiseAdagrad: return {.rate = in.learning_rate, .epsilon = c[1]};
    case RuleKind::kRmsProp:
    case RuleKind::kRmsPropCentered: return rmsprop_rates(rule, in, 0);
    case RuleKind::kRmsPropMomentum:
    case RuleKind::kRmsPropCenteredMomentum:
    case RuleKind::kRmsPropMomentumTable:
    case RuleKind::kRmsPropCenteredMomentumTable: return rmsprop_rates(rule, in, c[2]);
    case RuleKind::kAdam:
    case RuleKind::kLazyAdam:
    case RuleKind::kAmsgrad: return adam_rates(rule, in);
    case RuleKind::kAdamax:
    case RuleKind::kAdamaxTable: return adamax_rates(rule, in);
    case RuleKind::kNadam: return nadam_rates(rule, in);
    case RuleKind::kAdadelta:
    case RuleKind::kAdadeltaTable:
      return {.rate = in.learning_rate, .share_1 = share_of(c[2], c[0]), .epsilon = c[1]};
    case RuleKind::kFtrl:
    case RuleKind::kFtrlTable: return ftrl_rates(rule, in);
    case RuleKind::kCustom: return {.rate = in.learning_rate, .t = static_cast<float>(in.t)};
  }
  CAIRN_CHECK(false, "rule ", rule_name(rule.kind), " has no arithmetic");
}

void verify_rule_dtype(RuleKind kind, DType dtype) {
  if (kind == RuleKind::kAssign || dtype == DType::kFloat32) return;
  const bool counts = dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8;
  const bool assigns = is_assignment(kind);
  if (counts && assigns && kind != RuleKind::kAssignDiv) return;
  throw InvalidArgumentError(str("update rule ", rule_name(kind), " cannot change a variable of ",
                                 dtype_name(dtype),
                                 counts    ? ": it wants float32"
                                 : assigns ? ": only assign can"
                                           : ": optimizers want float32"));
}

}  // namespace cairn
