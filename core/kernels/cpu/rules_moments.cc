// Update rules that follow the gradient's moving averages: momentum, Adam and its kin. Their papers
// stand in core/graph/update_rule.h; arithmetic and order are the reference's, as in
// rules_adaptive.cc, which also says why each walk has two functions.
//
// Bias corrections depend on the step alone, so they are folded into the rates, in double, once per
// update.
#include <cmath>

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

NadamRates nadam_rates(const UpdateRule& rule, const RuleInputs& in) {
  const auto& c = rule.constants;
  const auto t = static_cast<double>(in.t);
  const double now = nadam_momentum(c[0], c[3], t), next = nadam_momentum(c[0], c[3], t + 1);
  const double product = nadam_product(c[0], c[3], in.t);
  const double correction = 1 / (1 - std::pow(static_cast<double>(c[1]), t));
  return {static_cast<float>(in.learning_rate * (1 - now) / (1 - product)),
          static_cast<float>(in.learning_rate * next / (1 - product * next)),
          static_cast<float>(correction),
          1 - c[0],
          1 - c[1],
          c[2]};
}

// 1 - beta^t: what a moving average that began at zero lacks after t steps.
double bias(float beta, std::int64_t t) {
  return 1 - std::pow(static_cast<double>(beta), static_cast<double>(t));
}

}  // namespace

void apply_momentum(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const auto& c = rule.constants;
  return c[1] != 0 ? nesterov_pass(pass, in.learning_rate, c[0])
                   : momentum_pass(pass, in.learning_rate, c[0]);
}

void apply_adam(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const auto& c = rule.constants;
  const double alpha = in.learning_rate * std::sqrt(bias(c[1], in.t)) / bias(c[0], in.t);
  const AdamRates rates{static_cast<float>(alpha), share_of(c[3], c[0]), share_of(c[4], c[1]),
                        c[2]};
  return rule.kind == RuleKind::kAmsgrad ? amsgrad_pass(pass, rates) : adam_pass(pass, rates);
}

void apply_adamax(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const auto& c = rule.constants;
  adamax_pass(pass, static_cast<float>(in.learning_rate / bias(c[0], in.t)), share_of(c[3], c[0]),
              c[1], c[2]);
}

void apply_nadam(const UpdateRule& rule, const RuleInputs& in, const Pass& pass) {
  const NadamRates rates = nadam_rates(rule, in);
  return rule.constants[4] != 0 ? nadam_pass(pass, rates) : nadam_named_pass(pass, rates);
}

}  // namespace cairn
