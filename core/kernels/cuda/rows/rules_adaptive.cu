// Update rules that scale each element's step by the size of its gradients so far, as
// core/kernels/cpu/rules_adaptive.cc has them.
#include <cmath>

#include "core/base/error.h"
#include "core/kernels/cuda/rows/rule_walk.h"

namespace cairn::cuda {
namespace {

// The divisor of a rule with its epsilon added to the root, or under it.
struct BesideRoot {
  CAIRN_DEVICE static float of(float x, float epsilon) { return std::sqrt(x) + epsilon; }
};
struct UnderRoot {
  CAIRN_DEVICE static float of(float x, float epsilon) { return std::sqrt(x + epsilon); }
};

template <typename Root>
struct Adagrad {
  using Number = float;
  static constexpr int kSlots = 1;
  CAIRN_DEVICE static void step(float& p, float& a, float&, float&, float g, bool,
                                const RuleRates& r) {
    a += g * g;
    p -= r.rate * g / Root::of(a, r.epsilon);
  }
};

// Here and below a row without gradient takes no step, whatever the quotient would be: without an
// epsilon, and before the first gradient, it is 0 / 0.
template <typename Root>
struct RmsProp {
  using Number = float;
  static constexpr int kSlots = 1;
  CAIRN_DEVICE static void step(float& p, float& rms, float&, float&, float g, bool named,
                                const RuleRates& r) {
    rms += (g * g - rms) * r.share_1;
    p -= named ? r.rate * g / Root::of(rms, r.epsilon) : 0.0f;
  }
};

// The variance of a centered rule is a difference, which rounding may leave just below zero.
CAIRN_DEVICE float variance(float rms, float mean) {
  const float difference = rms - mean * mean;
  return difference > 0 ? difference : 0.0f;
}

template <typename Root>
struct RmsPropCentered {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& rms, float& mean, float&, float g, bool named,
                                const RuleRates& r) {
    rms += (g * g - rms) * r.share_1;
    mean += (g - mean) * r.share_1;
    p -= named ? r.rate * g / Root::of(variance(rms, mean), r.epsilon) : 0.0f;
  }
};

struct RmsPropMomentum {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& rms, float& momentum, float&, float g, bool named,
                                const RuleRates& r) {
    rms += (g * g - rms) * r.share_1;
    const float added = named ? r.rate * g / std::sqrt(rms + r.epsilon) : 0.0f;
    momentum = momentum * r.momentum + added;
    p -= momentum;
  }
};

struct RmsPropCenteredMomentum {
  using Number = float;
  static constexpr int kSlots = 3;
  CAIRN_DEVICE static void step(float& p, float& rms, float& momentum, float& mean, float g,
                                bool named, const RuleRates& r) {
    rms += (g * g - rms) * r.share_1;
    mean += (g - mean) * r.share_1;
    const float added = named ? r.rate * g / std::sqrt(variance(rms, mean) + r.epsilon) : 0.0f;
    momentum = momentum * r.momentum + added;
    p -= momentum;
  }
};

struct Adadelta {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& gradients, float& updates, float&, float g,
                                bool named, const RuleRates& r) {
    gradients += (g * g - gradients) * r.share_1;
    const float update =
        named ? std::sqrt(updates + r.epsilon) * g / std::sqrt(gradients + r.epsilon) : 0.0f;
    p -= r.rate * update;
    updates += (update * update - updates) * r.share_1;
  }
};

// Algorithm 1 of McMahan et al. The power -1/2, the common one, is a square root.
struct SquareRoot {
  CAIRN_DEVICE static float of(float x, float) { return std::sqrt(x); }
};
struct AnyPower {
  CAIRN_DEVICE static float of(float x, float power) { return std::pow(x, power); }
};

template <typename Power>
struct Ftrl {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& a, float& linear, float&, float g, bool,
                                const RuleRates& r) {
    const float sum = a + g * g;
    const float root = Power::of(sum, r.power);
    linear += g + 2 * r.shrinkage * p - (root - Power::of(a, r.power)) / r.rate * p;
    const float quadratic = root / r.rate + 2 * r.l2;
    const float beyond = std::copysign(r.l1, linear) - linear;
    p = std::fabs(linear) > r.l1 ? beyond / quadratic : 0.0f;
    a = sum;
  }
};

struct Plus {
  CAIRN_DEVICE float operator()(float a, float b) const { return a + b; }
};

// One accumulator per row, the mean square of its gradients: a group of threads per row.
void walk_rows_of_rowwise_adagrad(Queue& queue, std::span<const RowWalk> walks) {
  CAIRN_CHECK(walks.size() == 1, "rows of several variables under a rule that counts by row");
  const RowWalk& walk = walks[0];
  const std::int64_t dim = walk.dim;
  if (dim == 0) return;
  const float share = 1.0f / static_cast<float>(dim);
  for_each_group(queue, walk.count, dim, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t i) {
    const std::int64_t row = walk.row(i);
    if (row < 0) return;
    float* const p = reinterpret_cast<float*>(walk.base) + row * walk.stride;
    const float* const g = reinterpret_cast<const float*>(walk.values) + i * dim;
    float* const slot = p + walk.slot_offset;
    const bool first = group.rank() == 0;
    float squares = 0;
    for (std::int64_t j = group.rank(); j < dim; j += group.size()) squares += g[j] * g[j];
    // One thread reads and writes the accumulator; the others get it as a sum with zeros.
    const float before = group.combine(first ? *slot : 0.0f, Plus());
    const float accumulator = before + group.combine(squares, Plus()) * share;
    if (first) *slot = accumulator;
    const float step = walk.rates->rate / (std::sqrt(accumulator) + walk.rates->epsilon);
    for (std::int64_t j = group.rank(); j < dim; j += group.size()) p[j] -= step * g[j];
  });
}

WalkRows walk_adagrad(const RuleConstants& c) {
  return c["epsilon_under_root"] != 0 ? walk_rows<Adagrad<UnderRoot>>
                                      : walk_rows<Adagrad<BesideRoot>>;
}
WalkRows walk_rowwise_adagrad(const RuleConstants&) { return walk_rows_of_rowwise_adagrad; }
WalkRows walk_rmsprop(const RuleConstants& c) {
  return c["epsilon_under_root"] != 0 ? walk_rows<RmsProp<UnderRoot>>
                                      : walk_rows<RmsProp<BesideRoot>>;
}
WalkRows walk_rmsprop_centered(const RuleConstants& c) {
  return c["epsilon_under_root"] != 0 ? walk_rows<RmsPropCentered<UnderRoot>>
                                      : walk_rows<RmsPropCentered<BesideRoot>>;
}
WalkRows walk_rmsprop_momentum(const RuleConstants&) { return walk_rows<RmsPropMomentum>; }
WalkRows walk_rmsprop_centered_momentum(const RuleConstants&) {
  return walk_rows<RmsPropCenteredMomentum>;
}
WalkRows walk_adadelta(const RuleConstants&) { return walk_rows<Adadelta>; }
WalkRows walk_ftrl(const RuleConstants& c) {
  return c["learning_rate_power"] == -0.5f ? walk_rows<Ftrl<SquareRoot>>
                                           : walk_rows<Ftrl<AnyPower>>;
}

constexpr RuleWalk kAdaptiveWalks[] = {
    {RuleKind::kAdagrad, walk_adagrad},
    {RuleKind::kRowwiseAdagrad, walk_rowwise_adagrad},
    {RuleKind::kRmsProp, walk_rmsprop},
    {RuleKind::kRmsPropCentered, walk_rmsprop_centered},
    {RuleKind::kRmsPropMomentum, walk_rmsprop_momentum},
    {RuleKind::kRmsPropCenteredMomentum, walk_rmsprop_centered_momentum},
    {RuleKind::kAdadelta, walk_adadelta},
    {RuleKind::kFtrl, walk_ftrl}};

}  // namespace

std::span<const RuleWalk> adaptive_walks() { return kAdaptiveWalks; }

}  // namespace cairn::cuda
