// Platt scaling: probabilities of a binary model, moved and stretched along the line of logits.
//
// It has two parameters, so that a few hundred examples are enough, and keeps the order of examples
// if its slope is positive.
//   Thread  any; what records or computes arrays belongs to one.
#pragma once
#include "core/graph/array.h"
#include "tools/job/model/calibration_sample.h"

namespace cairn::tools {

// probability = sigmoid(slope · logit + intercept), where a prediction counts as at least 2^-24 and
// at most 1 - 2^-24, so that its logit is finite. A negative slope turns the order of the examples
// round: the sample says the contrary of the predictions.
struct PlattScaling {
  double slope = 1, intercept = 0;
};

// The most likely parameters, for targets that are as far from 0 and 1 as the numbers of examples
// leave in doubt, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), where the n are sums of weights.
//   Source  Platt, "Probabilistic outputs for support vector machines and comparisons to
//           regularized likelihood methods", Advances in Large Margin Classifiers, 1999. The
//           iteration, Newton's with backtracking, is that of Lin, Lin, Weng, "A note on Platt's
//           probabilistic outputs for support vector machines", Machine Learning 68, 2007.
//   Errors  those of verify_sample().
//   Cost    About ten passes over the sample, in double.
PlattScaling fit_platt(const CalibrationSample& sample);

// Records the calibrated probabilities of predictions, float32 [b] each.
Array calibrated(const PlattScaling& scaling, const Array& probability);

}  // namespace cairn::tools
