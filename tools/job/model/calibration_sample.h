// Examples that a binary model has predicted, from which a calibration is fitted: a function of one
// number that turns its probabilities into those that the examples show
// (tools/job/model/platt_scaling.h, tools/job/model/isotonic.h).
//   Thread  any.
#pragma once
#include <cstddef>
#include <vector>

namespace cairn::tools {

// Predictions, what came of them, and how much each counts; equally long. A label between 0 and 1
// counts as much of each class as it is. No weights: 1 each.
struct CalibrationSample {
  std::vector<float> probabilities, labels, weights;

  float weight(std::size_t i) const { return weights.empty() ? 1.0f : weights[i]; }
};

// Sums of weights.
struct ClassWeights {
  double positive = 0, negative = 0;
};
ClassWeights class_weights(const CalibrationSample& sample);

// Checks that something can be learnt from the sample.
//   Errors  InvalidArgument: there is no example, or a class has none; a prediction is no
//           probability; a label is outside of [0, 1]; a weight is below 0; or all predictions are
//           equal.
void verify_sample(const CalibrationSample& sample);

}  // namespace cairn::tools
