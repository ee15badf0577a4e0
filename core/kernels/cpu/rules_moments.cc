// Update rules that follow the gradient's moving averages: momentum, Adam and its kin. Their papers
// stand in core/graph/update_rule.h; arithmetic and order are the reference's, as in
// rules_adaptive.cc, which also says why each walk has two functions.
//
// Bias corrections depend on the step alone, so fold_rates() makes them part of the rates, once per
// update.
#include <cmath>

#include "core/graph/rules/rule_def.h"
#include "core/kernels/cpu/rule_pass.h"

namespace cairn {
namespace {

CAIRN_CLONES void momentum_pass(const Pass& pass, float rate, float momentum) {
  walk<1>(
      pass,
      [=](float& p, float& a, float&, float&, float g) {
        a = a * momentum - rate * g;
        p += a;
      },
      [=](float& p, float& a, float&, float&) {
        a *= momentum;
        p += a;
      });
}

// Nesterov's momentum as the reference writes it: the step that the new momentum will take next is
// taken now.
CAIRN_CLONES void nesterov_pass(const Pass& pass, float rate, float momentum) {
  walk<1>(
      pass,
      [=](float& p, float& a, float&, float&, float g) {
        a = a * momentum - rate * g;
        p += a * momentum - rate * g;
      },
      [=](float& p, float& a, float&, float&) {
        a *= momentum;
        p += a * momentum;
      });
}

struct AdamRates {
  float alpha, share_1, share_2, epsilon;
};

CAIRN_CLONES void adam_pass(const Pass& pass, AdamRates r) {
  walk<2>(
      pass,
      [=](float& p, float& m, float& v, float&, float g) {
        m += (g - m) * r.share_1;
        v += (g * g - v) * r.share_2;
        p -= r.alpha * m / (std::sqrt(v) + r.epsilon);
      },
      [=](float& p, float& m, float& v, float&) {
        m -= m * r.share_1;
        v -= v * r.share_2;
        p -= r.alpha * m / (std::sqrt(v) + r.epsilon);
      });
}

CAIRN_CLONES void amsgrad_pass(const Pass& pass, AdamRates r) {
  walk<3>(
      pass,
      [=](float& p, float& m, float& v, float& largest, float g) {
        m += (g - m) * r.share_1;
        v += (g * g - v) * r.share_2;
        largest = v > largest ? v : largest;
        p -= r.alpha * m / (std::sqrt(largest) + r.epsilon);
      },
      [=](float& p, float& m, float& v, float& largest) {
        m -= m * r.share_1;
        v -= v * r.share_2;  // so it cannot become the largest
        p -= r.alpha * m / (std::sqrt(largest) + r.epsilon);
      });
}

CAIRN_CLONES void adamax_pass(const Pass& pass, float alpha, float share_1, float beta_2,
                              float epsilon) {
  walk<2>(
      pass,
      [=](float& p, float& m, float& u, float&, float g) {
        const float size = std::fabs(g), decayed = beta_2 * u;
        m += (g - m) * share_1;
        u = size > decayed ? size : decayed;
        p -= alpha * m / (u + epsilon);
      },
      [=](float& p, float& m, float& u, float&) {
        m -= m * share_1;
        u *= beta_2;
        p -= alpha * m / (u + epsilon);
      });
}

// The step is (gradient * g + moment * m) / (sqrt(correction * v) + epsilon).
struct NadamRates {
  float gradient, moment, correction, share_1, share_2, epsilon;
};

CAIRN_CLONES void nadam_pass(const Pass& pass, NadamRates r) {
  walk<2>(
      pass,
      [=](float& p, float& m, float& v, float&, float g) {
        m += (g - m) * r.share_1;
        v += (g * g - v) * r.share_2;
        p -= (r.gradient * g + r.moment * m) / (std::sqrt(r.correction * v) + r.epsilon);
      },
      [=](float& p, float& m, float& v, float&) {
        m -= m * r.share_1;
        v -= v * r.share_2;
        p -= r.moment * m / (std::sqrt(r.correction * v) + r.epsilon);
      });
}

// Nadam that moves named rows only: the slots of the others decay, their parameters stay.
CAIRN_CLONES void nadam_named_pass(const Pass& pass, NadamRates r) {
  walk<2>(
      pass,
      [=](float& p, float& m, float& v, float&, float g) {
        m += (g - m) * r.share_1;
        v += (g * g - v) * r.share_2;
        p -= (r.gradient * g + r.moment * m) / (std::sqrt(r.correction * v) + r.epsilon);
      },
      [=](float&, float& m, float& v, float&) {
        m -= m * r.share_1;
        v -= v * r.share_2;
      });
}

struct LionRates {
  float rate, momentum, share_1, beta_2, share_2;
};

CAIRN_INLINE float sign_of(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x); }

CAIRN_CLONES void lion_pass(const Pass& pass, LionRates r) {
  walk<1>(
      pass,
      [=](float& p, float& m, float&, float&, float g) {
        p -= r.rate * sign_of(m * r.momentum + g * r.share_1);
        m = m * r.beta_2 + g * r.share_2;
      },
      [=](float& p, float& m, float&, float&) {
        p -= r.rate * sign_of(m * r.momentum);
        m *= r.beta_2;
      });
}

void apply_momentum(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  return RuleConstants(rule)["nesterov"] != 0 ? nesterov_pass(pass, r.rate, r.momentum)
                                              : momentum_pass(pass, r.rate, r.momentum);
}

void apply_adam(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  adam_pass(pass, {r.rate, r.share_1, r.share_2, r.epsilon});
}

void apply_amsgrad(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  amsgrad_pass(pass, {r.rate, r.share_1, r.share_2, r.epsilon});
}

void apply_adamax(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  adamax_pass(pass, r.rate, r.share_1, r.beta_2, r.epsilon);
}

void apply_nadam(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  const NadamRates rates{r.rate, r.moment, r.correction, r.share_1, r.share_2, r.epsilon};
  return RuleConstants(rule)["moves_every_row"] != 0 ? nadam_pass(pass, rates)
                                                     : nadam_named_pass(pass, rates);
}

void apply_lion(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const RuleRates r = fold_rates(rule, in);
  lion_pass(pass, {r.rate, r.momentum, r.share_1, r.beta_2, r.share_2});
}

constexpr RowPass kMomentsPasses[] = {
    {RuleKind::kMomentum, apply_momentum}, {RuleKind::kAdam, apply_adam},
    {RuleKind::kAmsgrad, apply_amsgrad},   {RuleKind::kAdamax, apply_adamax},
    {RuleKind::kNadam, apply_nadam},       {RuleKind::kLion, apply_lion}};

}  // namespace

std::span<const RowPass> moments_passes() { return kMomentsPasses; }

}  // namespace cairn
