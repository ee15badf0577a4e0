#include "nn/metrics/metrics.h"

#include <cmath>
#include <limits>

#include "core/graph/ops.h"
#include "nn/base/layer.h"
#include "nn/base/value_range.h"
#include "nn/losses/losses.h"
#include "nn/metrics/classification_metrics.h"
#include "nn/metrics/metric_inputs.h"

namespace cairn::nn {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr float kLogitSpread = 4;  // buckets are even in sigmoid(logit / kLogitSpread)

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
  check_summary(metric, summary, {2});
  total_ += summary.values<float>()[0];
  count_ += summary.values<float>()[1];
}

void MeanAccumulator::merge(const MeanAccumulator& other) {
  total_ += other.total_;
  count_ += other.count_;
}

double MeanAccumulator::result() const { return count_ > 0 ? total_ / count_ : kUndefined; }

Array Mean::summary(const Array& values, const Array& weights) const {
  Array x = per_example(to_float(values), metric_text(name_) + ": the values");
  return mean_summary(x, metric_weights(name_, weights, x));
}

MeanMetric::MeanMetric(std::string name, Function values, Direction direction)
    : name_(std::move(name)), values_(std::move(values)), direction_(direction) {
  if (!values_) throw InvalidArgumentError(metric_text(name_) + " has no function");
}

Array MeanMetric::summary(const Array& prediction, const Array& label, const Array& weights) const {
  const bool probabilities =
      prediction.defined() && input(prediction) == MetricInput::kProbabilities;
  const Array p = probabilities ? metric_probability(name_, prediction) : prediction;
  Array x = per_example(to_float(values_(p, label)), metric_text(name_) + ": the values");
  return mean_summary(x, metric_weights(name_, weights, x));
}

MetricInput Accuracy::input(const Array&) const { return input_at_threshold(threshold_); }

Array Accuracy::summary(const Array& prediction, const Array& label, const Array& weights) const {
  const bool probabilities = input(prediction) == MetricInput::kProbabilities;
  Array right = binary_matches(probabilities ? metric_probability(name_, prediction) : prediction,
                               label, threshold_);
  return mean_summary(right, metric_weights(name_, weights, right));
}

Array LogLoss::summary(const Array& prediction, const Array& label, const Array& weights) const {
  const Array truth = label.defined()
                          ? in_range(label, kProbabilityRange, metric_text(name_) + ": a label",
                                     "labels are 0 and 1, or probabilities")
                          : label;
  Array loss = binary_cross_entropy(metric_probability(name_, prediction), truth);
  return mean_summary(loss, metric_weights(name_, weights, loss));
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
  FlatExamples batch = flat_examples(options_.name, prediction, label, weights);
  Array positive = cast(greater(batch.label, Array(0.5f)), DType::kInt64);
  Array cell = positive * Array(options_.buckets) + bucket_of(batch.prediction, options_.buckets);
  return reshape(unsorted_segment_sum(batch.weights, cell, 2 * options_.buckets),
                 Shape{2, options_.buckets});
}

void Auc::add(const Tensor& summary) {
  check_summary(options_.name, summary, {2, options_.buckets});
  auto values = summary.values<float>();
  for (std::size_t i = 0; i < negatives_.size(); ++i) {
    negatives_[i] += values[i];
    positives_[i] += values[negatives_.size() + i];
  }
}

double Auc::least_of(double bucket) const {
  const double place = bucket / static_cast<double>(options_.buckets);
  return 1 / (1 + std::pow((1 - place) / place, kLogitSpread));
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
  return options_.curve == Curve::kRoc ? roc_area() : precision_recall_area();
}

double Auc::roc_area() const {
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

// As the threshold sinks through a bucket, the weight t of true positives grows by `slope` for each
// unit that the weight p of what is predicted positive grows: t = slope · p + rest. The area is the
// integral of the precision t / p over t: slope · (the growth of t + rest · the growth of log p).
// Where nothing lies above the bucket, the line begins at the origin and the rest is 0.
double Auc::precision_recall_area() const {
  double true_positives = 0, predicted = 0, area = 0;
  for (std::size_t i = negatives_.size(); i-- > 0;) {
    const double grown = positives_[i] + negatives_[i];
    if (grown <= 0) continue;
    const double slope = positives_[i] / grown;
    const double rest = true_positives - slope * predicted;
    const double log_growth = predicted > 0 ? std::log((predicted + grown) / predicted) : 0;
    area += slope * (positives_[i] + rest * log_growth);
    true_positives += positives_[i];
    predicted += grown;
  }
  return true_positives > 0 ? area / true_positives : kUndefined;
}

void Auc::reset() {
  negatives_.assign(static_cast<std::size_t>(options_.buckets), 0);
  positives_.assign(static_cast<std::size_t>(options_.buckets), 0);
}

}  // namespace cairn::nn
