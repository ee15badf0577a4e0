// Update rules that follow the gradient's moving averages, as core/kernels/cpu/rules_moments.cc
// has them.
#include <cmath>

#include "core/base/error.h"
#include "core/kernels/cuda/rows/rule_walk.h"

namespace cairn::cuda {
namespace {

struct Momentum {
  using Number = float;
  static constexpr int kSlots = 1;
  CAIRN_DEVICE static void step(float& p, float& a, float&, float&, float g, bool,
                                const RuleRates& r) {
    a = a * r.momentum - r.rate * g;
    p += a;
  }
};

struct Nesterov {
  using Number = float;
  static constexpr int kSlots = 1;
  CAIRN_DEVICE static void step(float& p, float& a, float&, float&, float g, bool,
                                const RuleRates& r) {
    a = a * r.momentum - r.rate * g;
    p += a * r.momentum - r.rate * g;
  }
};

struct Adam {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& m, float& v, float&, float g, bool,
                                const RuleRates& r) {
    m += (g - m) * r.share_1;
    v += (g * g - v) * r.share_2;
    p -= r.rate * m / (std::sqrt(v) + r.epsilon);
  }
};

struct Amsgrad {
  using Number = float;
  static constexpr int kSlots = 3;
  // If a row has no gradient, its v decays, so it does not become the largest.
  CAIRN_DEVICE static void step(float& p, float& m, float& v, float& largest, float g, bool named,
                                const RuleRates& r) {
    m += (g - m) * r.share_1;
    v += (g * g - v) * r.share_2;
    largest = named && v > largest ? v : largest;
    p -= r.rate * m / (std::sqrt(largest) + r.epsilon);
  }
};

struct Adamax {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& m, float& u, float&, float g, bool,
                                const RuleRates& r) {
    const float size = std::fabs(g), decayed = r.beta_2 * u;
    m += (g - m) * r.share_1;
    u = size > decayed ? size : decayed;
    p -= r.rate * m / (u + r.epsilon);
  }
};

struct Nadam {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& m, float& v, float&, float g, bool,
                                const RuleRates& r) {
    m += (g - m) * r.share_1;
    v += (g * g - v) * r.share_2;
    p -= (r.rate * g + r.moment * m) / (std::sqrt(r.correction * v) + r.epsilon);
  }
};

// Nadam that moves named rows only: the slots of the others decay, their parameters stay.
struct NadamOfNamed {
  using Number = float;
  static constexpr int kSlots = 2;
  CAIRN_DEVICE static void step(float& p, float& m, float& v, float& none, float g, bool named,
                                const RuleRates& r) {
    const float before = p;
    Nadam::step(p, m, v, none, g, named, r);
    if (!named) p = before;
  }
};

struct Lion {
  using Number = float;
  static constexpr int kSlots = 1;
  CAIRN_DEVICE static void step(float& p, float& m, float&, float&, float g, bool,
                                const RuleRates& r) {
    const float way = m * r.momentum + g * r.share_1;
    p -= r.rate * (way > 0.0f ? 1.0f : (way < 0.0f ? -1.0f : way));
    m = m * r.beta_2 + g * r.share_2;
  }
};

WalkRows walk_momentum(const RuleConstants& c) {
  return c["nesterov"] != 0 ? walk_rows<Nesterov> : walk_rows<Momentum>;
}
WalkRows walk_adam(const RuleConstants&) { return walk_rows<Adam>; }
WalkRows walk_amsgrad(const RuleConstants&) { return walk_rows<Amsgrad>; }
WalkRows walk_lion(const RuleConstants&) { return walk_rows<Lion>; }
WalkRows walk_adamax(const RuleConstants&) { return walk_rows<Adamax>; }
WalkRows walk_nadam(const RuleConstants& c) {
  return c["moves_every_row"] != 0 ? walk_rows<Nadam> : walk_rows<NadamOfNamed>;
}

constexpr RuleWalk kMomentsWalks[] = {
    {RuleKind::kMomentum, walk_momentum}, {RuleKind::kAdam, walk_adam},
    {RuleKind::kAmsgrad, walk_amsgrad},   {RuleKind::kAdamax, walk_adamax},
    {RuleKind::kNadam, walk_nadam},       {RuleKind::kLion, walk_lion}};

}  // namespace

std::span<const RuleWalk> moments_walks() { return kMomentsWalks; }

}  // namespace cairn::cuda
