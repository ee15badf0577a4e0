#include "tools/job/model/platt_scaling.h"

#include <algorithm>
#include <cmath>

#include "core/graph/ops.h"

namespace cairn::tools {
namespace {

constexpr float kLeast = 0x1p-24f;  // 1 - 2^-24 is the largest float32 below 1

double logit_of(float probability) {
  const double p = std::clamp(probability, kLeast, 1 - kLeast);
  return std::log(p) - std::log1p(-p);
}

// log(1 + e^z) without overflow.
double softplus_of(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

class PlattFit {
 public:
  explicit PlattFit(const CalibrationSample& sample) : sample_(sample) {
    const auto [positive, negative] = class_weights(sample);
    total_ = positive + negative;
    high_ = (positive + 1) / (positive + 2);
    low_ = 1 / (negative + 2);
    found_ = {0, std::log((positive + 1) / (negative + 1))};
    for (const float p : sample.probabilities) logits_.push_back(static_cast<float>(logit_of(p)));
  }

  // The problem is convex and has two unknowns. The steps grow shorter where one would not lower
  // the loss by what its slope promises.
  PlattScaling run() {
    constexpr int kStepsMax = 100;
    constexpr double kDone = 1e-10;  // of the gradient per example
    double loss = loss_of(found_);
    for (int step = 0; step < kStepsMax; ++step) {
      const Slopes at = slopes();
      if (std::max(std::abs(at.slope), std::abs(at.intercept)) < kDone * total_) break;
      const double determinant = at.ss * at.ii - at.si * at.si;
      const PlattScaling way{-(at.ii * at.slope - at.si * at.intercept) / determinant,
                             -(at.ss * at.intercept - at.si * at.slope) / determinant};
      if (!take(way, at.slope * way.slope + at.intercept * way.intercept, loss)) break;
    }
    return found_;
  }

 private:
  // First and second derivatives by slope and intercept. The second ones begin above 0, so that
  // their matrix has an inverse.
  struct Slopes {
    double slope = 0, intercept = 0, ss = 1e-12, si = 0, ii = 1e-12;
  };

  double target(std::size_t i) const {
    return low_ + static_cast<double>(sample_.labels[i]) * (high_ - low_);
  }

  double loss_of(const PlattScaling& at) const {
    double loss = 0;
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const double z = at.slope * logits_[i] + at.intercept;
      loss += sample_.weight(i) * (softplus_of(z) - target(i) * z);
    }
    return loss;
  }

  Slopes slopes() const {
    Slopes sums;
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const double x = logits_[i], weight = sample_.weight(i);
      const double p = 1 / (1 + std::exp(-(found_.slope * x + found_.intercept)));
      const double first = weight * (p - target(i)), second = weight * p * (1 - p);
      sums.slope += first * x;
      sums.intercept += first;
      sums.ss += second * x * x;
      sums.si += second * x;
      sums.ii += second;
    }
    return sums;
  }

  // Whether any part of the way lowers the loss.
  bool take(const PlattScaling& way, double descent, double& loss) {
    for (double part = 1; part >= 1e-10; part /= 2) {
      const PlattScaling next{found_.slope + part * way.slope,
                              found_.intercept + part * way.intercept};
      const double there = loss_of(next);
      if (!(there < loss + 1e-4 * part * descent)) continue;
      found_ = next;
      loss = there;
      return true;
    }
    return false;
  }

  const CalibrationSample& sample_;
  std::vector<float> logits_;
  double total_ = 0, high_ = 1, low_ = 0;
  PlattScaling found_;
};

}  // namespace

PlattScaling fit_platt(const CalibrationSample& sample) {
  verify_sample(sample);
  return PlattFit(sample).run();
}

// log1p(-p) keeps the digits that log(1 - p) would lose for small p.
Array calibrated(const PlattScaling& scaling, const Array& probability) {
  const Array p = minimum(maximum(probability, Array(kLeast)), Array(1.0f - kLeast));
  const Array logit = log(p) - log1p(neg(p));
  return sigmoid(logit * Array(scaling.slope) + Array(scaling.intercept));
}

}  // namespace cairn::tools
