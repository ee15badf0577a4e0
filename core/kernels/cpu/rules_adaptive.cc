// Update rules that scale each element's step by the size of its gradients so far: Adagrad,
// RMSProp, Adadelta, FTRL. Their papers stand in core/graph/update_rule.h; the arithmetic and its
// order are those of TensorFlow's kernels, against which tests/vectors were recorded.
//
// A walk takes two functions: one for rows that have a gradient, and one for the others of a table
// rule. Unless a rule moves named rows only, the second is the first with g = 0, to the bit: a
// row's result must not depend on whether its gradient of zero was sent or left out.
#include <array>
#include <cmath>

#include "core/graph/rules/rule_def.h"
#include "core/kernels/cpu/rule_pass.h"

namespace cairn {
namespace {

// A rule under which a gradient of zero changes nothing.
constexpr auto kNothing = [](float&, float&, float&, float&) {};

CAIRN_CLONES void adagrad_pass(const Pass& pass, float rate, float epsilon) {
  walk<1>(
      pass,
      [=](float& p, float& a, float&, float&, float g) {
        float sum = a + g * g;
        a = sum;
        p -= rate * g / (std::sqrt(sum) + epsilon);
      },
      kNothing);
}

CAIRN_CLONES void adagrad_under_root_pass(const Pass& pass, float rate, float epsilon) {
  walk<1>(
      pass,
      [=](float& p, float& a, float&, float&, float g) {
        float sum = a + g * g;
        a = sum;
        p -= rate * g / std::sqrt(sum + epsilon);
      },
      kNothing);
}

// Eight sums side by side: they are vectorised although the compiler may not reorder additions, and
// give the same bits whichever instruction set does it.
CAIRN_INLINE float sum_of_squares(const float* g, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<float, kLanes> sums{};
  const std::int64_t whole = n / kLanes * kLanes;
  for (std::int64_t j = 0; j < whole; j += kLanes)
    for (std::int64_t k = 0; k < kLanes; ++k)
      sums[static_cast<std::size_t>(k)] += g[j + k] * g[j + k];
  for (std::int64_t j = whole; j < n; ++j) sums[static_cast<std::size_t>(j - whole)] += g[j] * g[j];
  float sum = 0;
  for (float one : sums) sum += one;
  return sum;
}

// One accumulator per row: the mean square of its gradients. No walk() fits, because the slot is
// one number and its value is wanted before the first parameter of the row is changed.
CAIRN_CLONES void rowwise_adagrad_pass(const Pass& pass, float rate, float epsilon) {
  const float share = 1.0f / static_cast<float>(pass.dim);
  for (std::size_t i = 0; i < kPrefetchRows; ++i) prefetch<1>(pass, i);
  for (std::size_t i = 0; i < pass.count; ++i) {
    prefetch<1>(pass, i + kPrefetchRows);
    float* p =
        pass.base +
        (pass.numbers != nullptr ? pass.numbers[i] : static_cast<std::int64_t>(i)) * pass.stride;
    const float* g = pass.values + static_cast<std::int64_t>(i) * pass.dim;
    float& accumulator = p[pass.slot_offset];
    accumulator += sum_of_squares(g, pass.dim) * share;
    const float step = rate / (std::sqrt(accumulator) + epsilon);
#pragma GCC ivdep
    for (std::int64_t j = 0; j < pass.dim; ++j) p[j] -= step * g[j];
  }
}

struct AdadeltaRates {
  float rate, share, epsilon;
};

CAIRN_CLONES void adadelta_pass(const Pass& pass, AdadeltaRates r) {
  walk<2>(
      pass,
      [=](float& p, float& gradients, float& updates, float&, float g) {
        gradients += (g * g - gradients) * r.share;
        const float update = std::sqrt(updates + r.epsilon) * g / std::sqrt(gradients + r.epsilon);
        p -= r.rate * update;
        updates += (update * update - updates) * r.share;
      },
      [=](float&, float& gradients, float& updates, float&) {
        gradients -= gradients * r.share;
        updates -= updates * r.share;
      });
}

struct FtrlRates {
  float rate, power, l1, l2, shrinkage;
};

// FTRL-proximal keeps the sum of adjusted gradients (`linear`) and makes the parameter anew from it
// at each update, so that L1 gives exact zeros. Algorithm 1 of McMahan et al., with the power of
// the accumulator as a constant; -1/2, the common one, has a kernel with a square root instead of
// std::pow.
template <typename Power>
CAIRN_INLINE void ftrl_rows(const Pass& pass, FtrlRates r, Power power) {
  auto update = [=](float& p, float& a, float& linear, float&, float g) {
    float sum = a + g * g;
    float root = power(sum);
    linear += g + 2 * r.shrinkage * p - (root - power(a)) / r.rate * p;
    float quadratic = root / r.rate + 2 * r.l2;
    float beyond = std::copysign(r.l1, linear) - linear;
    p = std::fabs(linear) > r.l1 ? beyond / quadratic : 0.0f;
    a = sum;
  };
  walk<2>(pass, update, [=](float& p, float& a, float& linear, float& none) {
    update(p, a, linear, none, 0.0f);
  });
}

CAIRN_CLONES void ftrl_sqrt_pass(const Pass& pass, FtrlRates r) {
  ftrl_rows(pass, r, [](float x) { return std::sqrt(x); });
}

void ftrl_power_pass(const Pass& pass, FtrlRates r) {
  ftrl_rows(pass, r, [r](float x) { return std::pow(x, r.power); });
}

// Averages move by (new - old) * share, as the reference rounds.
struct RmsRates {
  float rate, share, momentum, epsilon;
};

// The variance of a centered rule is a difference, which rounding may leave just below zero.
CAIRN_INLINE float variance(float rms, float mean) {
  const float difference = rms - mean * mean;
  return difference > 0 ? difference : 0.0f;
}

// The divisor of a rule with its epsilon added to the root, or under it.
struct BesideRoot {
  float epsilon;
  CAIRN_INLINE float operator()(float x) const { return std::sqrt(x) + epsilon; }
};
struct UnderRoot {
  float epsilon;
  CAIRN_INLINE float operator()(float x) const { return std::sqrt(x + epsilon); }
};

template <typename Root>
CAIRN_INLINE void rms_rows(const Pass& pass, RmsRates r, Root root) {
  walk<1>(
      pass,
      [=](float& p, float& rms, float&, float&, float g) {
        rms += (g * g - rms) * r.share;
        p -= r.rate * g / root(rms);
      },
      [=](float&, float& rms, float&, float&) { rms -= rms * r.share; });
}
CAIRN_CLONES void rms_beside_pass(const Pass& pass, RmsRates r) {
  rms_rows(pass, r, BesideRoot{r.epsilon});
}
CAIRN_CLONES void rms_under_pass(const Pass& pass, RmsRates r) {
  rms_rows(pass, r, UnderRoot{r.epsilon});
}

template <typename Root>
CAIRN_INLINE void centered_rows(const Pass& pass, RmsRates r, Root root) {
  walk<2>(
      pass,
      [=](float& p, float& rms, float& mean, float&, float g) {
        rms += (g * g - rms) * r.share;
        mean += (g - mean) * r.share;
        p -= r.rate * g / root(variance(rms, mean));
      },
      [=](float&, float& rms, float& mean, float&) {
        rms -= rms * r.share;
        mean -= mean * r.share;
      });
}
CAIRN_CLONES void centered_beside_pass(const Pass& pass, RmsRates r) {
  centered_rows(pass, r, BesideRoot{r.epsilon});
}
CAIRN_CLONES void centered_under_pass(const Pass& pass, RmsRates r) {
  centered_rows(pass, r, UnderRoot{r.epsilon});
}

CAIRN_CLONES void rms_momentum_pass(const Pass& pass, RmsRates r) {
  walk<2>(
      pass,
      [=](float& p, float& rms, float& momentum, float&, float g) {
        rms += (g * g - rms) * r.share;
        momentum = momentum * r.momentum + r.rate * g / std::sqrt(rms + r.epsilon);
        p -= momentum;
      },
      [=](float& p, float& rms, float& momentum, float&) {
        rms -= rms * r.share;
        momentum *= r.momentum;
        p -= momentum;
      });
}

CAIRN_CLONES void centered_momentum_pass(const Pass& pass, RmsRates r) {
  walk<3>(
      pass,
      [=](float& p, float& rms, float& momentum, float& mean, float g) {
        rms += (g * g - rms) * r.share;
        mean += (g - mean) * r.share;
        momentum = momentum * r.momentum + r.rate * g / std::sqrt(variance(rms, mean) + r.epsilon);
        p -= momentum;
      },
      [=](float& p, float& rms, float& momentum, float& mean) {
        rms -= rms * r.share;
        mean -= mean * r.share;
        momentum *= r.momentum;
        p -= momentum;
      });
}

void apply_adagrad(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  return RuleConstants(rule)["epsilon_under_root"] != 0
             ? adagrad_under_root_pass(pass, r.rate, r.epsilon)
             : adagrad_pass(pass, r.rate, r.epsilon);
}

void apply_rowwise_adagrad(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  if (pass.dim > 0) rowwise_adagrad_pass(pass, r.rate, r.epsilon);
}

void apply_adadelta(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  adadelta_pass(pass, {r.rate, r.share_1, r.epsilon});
}

void apply_ftrl(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  const FtrlRates rates{r.rate, r.power, r.l1, r.l2, r.shrinkage};
  return rates.power == 0.5f ? ftrl_sqrt_pass(pass, rates) : ftrl_power_pass(pass, rates);
}

RmsRates rms_rates(const UpdateRule& rule, const RuleInputs& in) {
  const RuleRates r = fold_rates(rule, in);
  return {r.rate, r.share_1, r.momentum, r.epsilon};
}

void apply_rmsprop(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const bool under_root = RuleConstants(rule)["epsilon_under_root"] != 0;
  const RmsRates rates = rms_rates(rule, in);
  return under_root ? rms_under_pass(pass, rates) : rms_beside_pass(pass, rates);
}

void apply_rmsprop_centered(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const bool under_root = RuleConstants(rule)["epsilon_under_root"] != 0;
  const RmsRates rates = rms_rates(rule, in);
  return under_root ? centered_under_pass(pass, rates) : centered_beside_pass(pass, rates);
}

// With momentum, epsilon is under the root.
void apply_rmsprop_momentum(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  rms_momentum_pass(pass, rms_rates(rule, in));
}

void apply_rmsprop_centered_momentum(const UpdateRule& rule, const RuleInputs& in,
                                     const Pass& pass) {
  centered_momentum_pass(pass, rms_rates(rule, in));
}

constexpr RowPass kAdaptivePasses[] = {
    {RuleKind::kAdagrad, apply_adagrad},
    {RuleKind::kRowwiseAdagrad, apply_rowwise_adagrad},
    {RuleKind::kAdadelta, apply_adadelta},
    {RuleKind::kFtrl, apply_ftrl},
    {RuleKind::kRmsProp, apply_rmsprop},
    {RuleKind::kRmsPropCentered, apply_rmsprop_centered},
    {RuleKind::kRmsPropMomentum, apply_rmsprop_momentum},
    {RuleKind::kRmsPropCenteredMomentum, apply_rmsprop_centered_momentum}};

}  // namespace

std::span<const RowPass> adaptive_passes() { return kAdaptivePasses; }

}  // namespace cairn
