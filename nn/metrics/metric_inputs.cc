#include "nn/metrics/metric_inputs.h"

#include <utility>

#include "core/graph/ops.h"
#include "nn/base/example_pairs.h"
#include "nn/base/layer.h"
#include "nn/base/value_range.h"

namespace cairn::nn {

std::string metric_text(const std::string& metric) { return str("metric \"", metric, "\""); }

Array metric_probability(const std::string& metric, const Array& prediction) {
  if (!prediction.defined()) return prediction;
  return in_range(prediction, kProbabilityRange, metric_text(metric) + ": a prediction",
                  "it takes probabilities: nn::probability() makes them of logits, and so does a "
                  "model whose loss has the option from_logits = true");
}

MetricInput input_at_threshold(float threshold) {
  return threshold > 0 && threshold < 1 ? MetricInput::kProbabilities : MetricInput::kNumbers;
}

Array metric_weights(const std::string& metric, const Array& weights, const Array& values) {
  if (!weights.defined()) return ones_like(values);
  Array each = per_example(to_float(weights), metric_text(metric) + ": weights");
  if (!fits(each.shape()[0], values.shape()[0]))
    throw InvalidArgumentError(str(metric_text(metric), ": weights are ",
                                   weights.type().to_string(), ", for examples that are ",
                                   values.type().to_string()));
  return each;
}

Array mean_summary(const Array& values, const Array& weights) {
  return stack({sum(values * weights), sum(weights)}, 0);
}

FlatExamples flat_examples(const std::string& metric, const Array& prediction, const Array& label,
                           const Array& weights) {
  auto [p, y] = numbers_each(metric_text(metric), metric_probability(metric, prediction), label);
  FlatExamples made{p, y, {}};
  if (p.rank() == 1) {
    made.weights = metric_weights(metric, weights, p);
    return made;
  }
  Array of_rows = metric_weights(metric, weights, reduce_sum(p, {1}));
  const Shape flat{-1};
  made.weights = reshape(broadcast_like(expand_dims(of_rows, 1), p), flat);
  made.prediction = reshape(p, flat);
  made.label = reshape(y, flat);
  return made;
}

void check_summary(const std::string& metric, const Tensor& summary, const Shape& shape) {
  const TensorType wanted{DType::kFloat32, shape};
  if (summary.defined() && summary.type() == wanted) return;
  throw InvalidArgumentError(str(metric_text(metric), " adds summaries of type ",
                                 wanted.to_string(), ", got ",
                                 summary.defined() ? summary.type().to_string() : "nothing"));
}

}  // namespace cairn::nn
