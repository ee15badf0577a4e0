// Shared by metrics while they record a summary, and when they add one.
#pragma once
#include <string>

#include "core/graph/array.h"
#include "nn/metrics/metrics.h"

namespace cairn::nn {

// Predictions that are checked to be probabilities when the step runs; undefined ones are returned.
Array metric_probability(const std::string& metric, const Array& prediction);

// The input of a metric that compares predictions with this threshold.
MetricInput input_at_threshold(float threshold);

// Undefined weights count as ones; `values` is [b].
//   Errors  InvalidArgument, naming the metric: weights that are not one number per example.
Array metric_weights(const std::string& metric, const Array& weights, const Array& values);

// float32 [2]: the sum of values · weights, and of the weights; both [b].
Array mean_summary(const Array& values, const Array& weights);

// Binary examples: float32 [m] each; the predictions are checked to be probabilities. In
// predictions and labels [b, d] each number is an example of the weight of its row.
struct FlatExamples {
  Array prediction, label, weights;
};
FlatExamples flat_examples(const std::string& metric, const Array& prediction, const Array& label,
                           const Array& weights);

// The beginning of a metric's error messages.
std::string metric_text(const std::string& metric);

//   Errors  InvalidArgument: the summary is not float32 of this shape.
void check_summary(const std::string& metric, const Tensor& summary, const Shape& shape);

}  // namespace cairn::nn
