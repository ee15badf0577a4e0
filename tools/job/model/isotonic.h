// Isotonic regression: probabilities of a binary model, calibrated by any rising function.
//
// It wants a few thousand examples, and makes neighbours equal. Where it saw one class alone, as it
// often does at both ends, it gives 0 or 1.
//   Thread  any; what records or computes arrays belongs to one.
#pragma once
#include <cstddef>
#include <vector>

#include "core/graph/array.h"
#include "tools/job/model/calibration_sample.h"

namespace cairn::tools {

// Linear between points, whose predictions ascend and whose probabilities do not fall; constant
// beyond the first and the last one.
struct IsotonicPoints {
  std::vector<float> predictions, probabilities;
};
inline constexpr std::size_t kIsotonicPointsMax = 1024;

// The rising function with the least squares to the labels, by pool-adjacent-violators: equal
// predictions are one, and each pool gives its mean at its smallest and its largest prediction.
// Where there are more than half of kIsotonicPointsMax pools, neighbours whose means differ least
// for their weights become one.
//   Source  Zadrozny, Elkan, "Transforming classifier scores into accurate multiclass probability
//           estimates", KDD 2002. The interpolation is scikit-learn's (IsotonicRegression with
//           out_of_bounds="clip").
//   Errors  those of verify_sample().
//   Cost    Sorts the sample.
IsotonicPoints fit_isotonic(const CalibrationSample& sample);

// Records the calibrated probabilities of predictions, float32 [b] each.
Array calibrated(const IsotonicPoints& points, const Array& probability);

}  // namespace cairn::tools
