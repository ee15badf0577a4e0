#include "nn/metrics.h"

#include <algorithm>
#include <limits>

#include "core/graph/ops.h"
#include "nn/layer.h"
#include "nn/losses.h"

namespace cairn::nn {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr float kLogitSpread = 4;  // buckets are even in sigmoid(logit / kLogitSpread)

// What summaries of binary metrics are made of.
struct Examples {
  Array prediction, label, weights;  // float32 [b] each
};

Array weights_like(const std::string& metric, const Array& weights, const Array& values) {
  if (!weights.defined()) return ones_like(values);
  return per_example(to_float(weights), str("metric \"", metric, "\": weights"));
}

Examples examples(const std::string& metric, const Array& prediction, const Array& label,
                  const Array& weights) {
  if (!prediction.defined() || !label.defined())
    throw InvalidArgumentError(str("metric \"", metric, "\" wants a prediction and a label"));
  Examples made;
  made.prediction =
      per_example(to_float(prediction), str("metric \"", metric, "\": the prediction"));
  made.label = per_example(to_float(label), str("metric \"", metric, "\": the label"));
  made.weights = weights_like(metric, weights, made.prediction);
  return made;
}

Array mean_summary(const Array& values, const Array& weights) {
  return stack({sum(values * weights), sum(weights)}, 0);
}

// The bucket of each prediction: [b] int64 in [0, buckets). Probabilities are kept away from 0 and
// 1, where the logit is infinite; 1 - 6e-8 is the largest float32 below 1. log1p(-p) keeps the
// digits that log(1 - p) would lose for small p.
Array bucket_of(const Array& prediction, std::int64_t buckets) {
  Array p = minimum(maximum(prediction, Array(1e-30f)), Array(1.0f - 6e-8f));
  Array logit = log(p) - log1p(neg(p));
  Array place = sigmoid(logit * Array(1.0f / kLogitSpread)) * Array(static_cast<float>(buckets));
  return cast(floor(minimum(place, Array(static_cast<float>(buckets - 1)))), DType::kInt64);
}

}  // namespace

Array probability(const Array& logits) {
  return sigmoid(per_example(logits, "probability: the logits"));
}

// Summed in double: a float32 sum of many batches would stop growing.
void MeanAccumulator::add(const Tensor& summary, const std::string& metric) {
  if (!summary.defined() || summary.type() != TensorType{DType::kFloat32, {2}})
    throw InvalidArgumentError(str("metric \"", metric,
                                   "\" adds summaries of type float32[2], got ",
                                   summary.defined() ? summary.type().to_string() : "nothing"));
  total_ += summary.values<float>()[0];
  count_ += summary.values<float>()[1];
}

void MeanAccumulator::merge(const MeanAccumulator& other) {
  total_ += other.total_;
  count_ += other.count_;
}

double MeanAccumulator::result() const { return count_ > 0 ? total_ / count_ : kUndefined; }

Array Mean::summary(const Array& values, const Array& weights) const {
  Array x = per_example(to_float(values), str("metric \"", name_, "\": the values"));
  return mean_summary(x, weights_like(name_, weights, x));
}

Array Accuracy::summary(const Array& prediction, const Array& label, const Array& weights) const {
  Examples batch = examples(name_, prediction, label, weights);
  Array right = equal(cast(greater(batch.prediction, Array(threshold_)), DType::kInt32),
                      cast(greater(batch.label, Array(0.5f)), DType::kInt32));
  return mean_summary(cast(right, DType::kFloat32), batch.weights);
}

Array LogLoss::summary(const Array& prediction, const Array& label, const Array& weights) const {
  Examples batch = examples(name_, prediction, label, weights);
  return mean_summary(binary_cross_entropy(batch.prediction, batch.label), batch.weights);
}

Auc::Auc(AucOptions options) : options_(std::move(options)) {
  if (options_.buckets < 2)
    throw InvalidArgumentError(
        str("metric \"", options_.name, "\": buckets must be at least 2, got ", options_.buckets));
  reset();
}

// The two histograms are one sum by segments: the cell of an example is its class times the number
// of buckets, plus its bucket.
Array Auc::summary(const Array& prediction, const Array& label, const Array& weights) const {
  Examples batch = examples(options_.name, prediction, label, weights);
  Array positive = cast(greater(batch.label, Array(0.5f)), DType::kInt64);
  Array cell = positive * Array(options_.buckets) + bucket_of(batch.prediction, options_.buckets);
  return reshape(unsorted_segment_sum(batch.weights, cell, 2 * options_.buckets),
                 Shape{2, options_.buckets});
}

void Auc::add(const Tensor& summary) {
  if (!summary.defined() || summary.type() != TensorType{DType::kFloat32, {2, options_.buckets}})
    throw InvalidArgumentError(
        str("metric \"", options_.name, "\" adds summaries of type float32[2, ", options_.buckets,
            "], got ", summary.defined() ? summary.type().to_string() : "nothing"));
  auto values = summary.values<float>();
  for (std::size_t i = 0; i < negatives_.size(); ++i) {
    negatives_[i] += values[i];
    positives_[i] += values[negatives_.size() + i];
  }
}

void Auc::merge(const Auc& other) {
  if (other.negatives_.size() != negatives_.size())
    throw InvalidArgumentError(str("metric \"", options_.name, "\": merging ",
                                   other.negatives_.size(), " buckets into ", negatives_.size()));
  for (std::size_t i = 0; i < negatives_.size(); ++i) {
    negatives_[i] += other.negatives_[i];
    positives_[i] += other.positives_[i];
  }
}

double Auc::result() const {
  // Sums as the buckets ascend: the weight of negatives in lower buckets, that of all positives,
  // that of pairs in the right order.
  double below = 0, positives = 0, pairs = 0;
  for (std::size_t i = 0; i < negatives_.size(); ++i) {
    pairs += positives_[i] * (below + 0.5 * negatives_[i]);
    below += negatives_[i];
    positives += positives_[i];
  }
  return below > 0 && positives > 0 ? pairs / (below * positives) : kUndefined;
}

void Auc::reset() {
  negatives_.assign(static_cast<std::size_t>(options_.buckets), 0);
  positives_.assign(static_cast<std::size_t>(options_.buckets), 0);
}

}  // namespace cairn::nn
