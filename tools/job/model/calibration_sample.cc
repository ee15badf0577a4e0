#include "tools/job/model/calibration_sample.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

void verify_numbers(const CalibrationSample& sample) {
  const auto is_share = [](float value) { return value >= 0 && value <= 1; };
  const auto& [probabilities, labels, weights] = sample;
  if (const auto bad = std::ranges::find_if_not(probabilities, is_share);
      bad != probabilities.end())
    throw InvalidArgumentError(
        str("calibration: the model predicts ", *bad, " for an example, which is no probability"));
  if (const auto bad = std::ranges::find_if_not(labels, is_share); bad != labels.end())
    throw InvalidArgumentError(str("calibration: a label is ", *bad,
                                   "; labels are 0 and 1, or probabilities between them"));
  const auto is_weight = [](float value) { return value >= 0 && std::isfinite(value); };
  if (const auto bad = std::ranges::find_if_not(weights, is_weight); bad != weights.end())
    throw InvalidArgumentError(
        str("calibration: the weight of an example is ", *bad, "; weights are 0 or more"));
}

}  // namespace

ClassWeights class_weights(const CalibrationSample& sample) {
  ClassWeights sums;
  for (std::size_t i = 0; i < sample.labels.size(); ++i) {
    const double weight = sample.weight(i), label = sample.labels[i];
    sums.positive += weight * label;
    sums.negative += weight * (1 - label);
  }
  return sums;
}

void verify_sample(const CalibrationSample& sample) {
  verify_numbers(sample);
  const auto [positive, negative] = class_weights(sample);
  if (positive <= 0 || negative <= 0)
    throw InvalidArgumentError(
        str("calibration: no example is ", positive <= 0 ? "positive" : "negative",
            ": probabilities are fitted on examples of both classes; give data that has both"));
  float low = 1, high = 0;
  for (std::size_t i = 0; i < sample.probabilities.size(); ++i) {
    if (sample.weight(i) == 0) continue;
    low = std::min(low, sample.probabilities[i]);
    high = std::max(high, sample.probabilities[i]);
  }
  if (low == high)
    throw InvalidArgumentError(
        str("calibration: the model predicts ", low, " for every example, which tells none from ",
            "another: give other data, or train a model that learns something"));
}

}  // namespace cairn::tools
