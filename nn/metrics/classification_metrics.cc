#include "nn/metrics/classification_metrics.h"

#include <limits>
#include <utility>

#include "core/graph/ops.h"
#include "nn/base/example_pairs.h"
#include "nn/base/layer.h"
#include "nn/metrics/metric_inputs.h"

namespace cairn::nn {
namespace {

Array as_float(const Array& truth) { return cast(truth, DType::kFloat32); }

MeanMetric::Function top_k_function(const std::string& name, std::int64_t k, bool sparse) {
  if (k < 1) throw InvalidArgumentError(str(metric_text(name), ": k must be at least 1, got ", k));
  if (sparse)
    return [k](const Array& prediction, const Array& label) {
      return sparse_top_k_matches(prediction, label, k);
    };
  return [k](const Array& prediction, const Array& label) {
    return top_k_matches(prediction, label, k);
  };
}

// `ids`: int [b]. An id that is no class matches nothing.
Array among_the_best(const char* what, const Array& prediction, const Array& ids, std::int64_t k) {
  const std::int64_t classes = prediction.shape()[1];
  if (classes == Shape::kUnknown)
    throw InvalidArgumentError(str(what, ": the number of classes of the prediction, ",
                                   prediction.type().to_string(), ", must be known"));
  Array scores = to_float(prediction);
  Array chosen = one_hot(ids, classes);
  Array own = reduce_sum(where(equal(chosen, 1.0f), scores, 0.0f), {1}, true);
  Array better = reduce_sum(as_float(greater(scores, own)), {1});
  Array nans = reduce_sum(as_float(not_equal(scores, scores)), {1});
  Array known = greater(reduce_sum(chosen, {1}), 0.0f);
  Array in = logical_and(less(better, static_cast<float>(k)), equal(nans, 0.0f));
  return as_float(logical_and(in, known));
}

ThresholdOptions checked_thresholds(ThresholdOptions options, const char* name) {
  if (options.name.empty()) options.name = name;
  if (options.thresholds.empty())
    throw InvalidArgumentError(metric_text(options.name) + " has no threshold");
  for (float one : options.thresholds)
    if (!(one >= 0 && one <= 1))
      throw InvalidArgumentError(
          str(metric_text(options.name), ": a threshold of ", one, "; 0 to 1 is wanted"));
  return options;
}

// Sums over a batch; those for each threshold are [thresholds].
struct ThresholdSums {
  Array true_positives, predicted, positives;
};

Array class_column(const ThresholdOptions& options, const Array& x) {
  if (x.defined() && x.rank() == 2) return slice(x, 1, *options.class_id, 1);
  throw InvalidArgumentError(str(metric_text(options.name), ": a class_id is a column of ",
                                 "predictions and labels [b, c]; got ",
                                 x.defined() ? x.type().to_string() : "nothing"));
}

ThresholdSums threshold_sums(const ThresholdOptions& options, const Array& prediction,
                             const Array& label, const Array& weights) {
  const bool one_class = options.class_id.has_value();
  FlatExamples all =
      flat_examples(options.name, one_class ? class_column(options, prediction) : prediction,
                    one_class ? class_column(options, label) : label, weights);
  const Array thresholds = Tensor::of<float>(
      Shape{static_cast<std::int64_t>(options.thresholds.size())}, options.thresholds);
  Array weight = expand_dims(all.weights, 1);
  Array positive = as_float(greater(expand_dims(all.label, 1), 0.5f)) * weight;
  Array above = as_float(greater(expand_dims(all.prediction, 1), thresholds));
  ThresholdSums sums;
  sums.true_positives = reduce_sum(above * positive, {0});
  sums.predicted = reduce_sum(above * weight, {0});
  sums.positives = ones_like(sums.predicted) * sum(positive);
  return sums;
}

}  // namespace

Array binary_matches(const Array& prediction, const Array& label, float threshold) {
  auto [p, y] = numbers_each("binary accuracy", prediction, label);
  return last_axis_mean(
      as_float(equal(as_float(greater(p, threshold)), as_float(greater(y, 0.5f)))));
}

Array categorical_matches(const Array& prediction, const Array& label) {
  auto [p, y] = one_row_each("categorical accuracy", prediction, label);
  return as_float(equal(argmax(p, 1), argmax(y, 1)));
}

Array sparse_categorical_matches(const Array& prediction, const Array& label) {
  Array ids = class_ids("sparse categorical accuracy", prediction, label);
  return as_float(equal(argmax(to_float(prediction), 1), cast(ids, DType::kInt64)));
}

Array top_k_matches(const Array& prediction, const Array& label, std::int64_t k) {
  auto [p, y] = one_row_each("top-k accuracy", prediction, label);
  return among_the_best("top-k accuracy", p, argmax(y, 1), k);
}

Array sparse_top_k_matches(const Array& prediction, const Array& label, std::int64_t k) {
  Array ids = class_ids("sparse top-k accuracy", prediction, label);
  return among_the_best("sparse top-k accuracy", prediction, ids, k);
}

BinaryAccuracy::BinaryAccuracy(float threshold, const std::string& name)
    : MeanMetric(
          name,
          [threshold](const Array& prediction, const Array& label) {
            return binary_matches(prediction, label, threshold);
          },
          Direction::kRises),
      threshold_(threshold) {}
MetricInput BinaryAccuracy::input(const Array&) const { return input_at_threshold(threshold_); }
CategoricalAccuracy::CategoricalAccuracy(const std::string& name)
    : MeanMetric(name, categorical_matches, Direction::kRises) {}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(const std::string& name)
    : MeanMetric(name, sparse_categorical_matches, Direction::kRises) {}
TopKCategoricalAccuracy::TopKCategoricalAccuracy(std::int64_t k, const std::string& name)
    : MeanMetric(name, top_k_function(name, k, false), Direction::kRises) {}
SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(std::int64_t k,
                                                             const std::string& name)
    : MeanMetric(name, top_k_function(name, k, true), Direction::kRises) {}

void ThresholdRatios::add(const Tensor& summary, const std::string& metric) {
  check_summary(metric, summary, {2, static_cast<std::int64_t>(above_.size())});
  auto values = summary.values<float>();
  for (std::size_t i = 0; i < above_.size(); ++i) {
    above_[i] += values[i];
    below_[i] += values[above_.size() + i];
  }
  added_ = true;
}

void ThresholdRatios::merge(const ThresholdRatios& other, const std::string& metric) {
  if (other.above_.size() != above_.size())
    throw InvalidArgumentError(str(metric_text(metric), ": merging ", other.above_.size(),
                                   " thresholds into ", above_.size()));
  for (std::size_t i = 0; i < above_.size(); ++i) {
    above_[i] += other.above_[i];
    below_[i] += other.below_[i];
  }
  added_ = added_ || other.added_;
}

std::vector<double> ThresholdRatios::results() const {
  std::vector<double> ratios(above_.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; added_ && i < ratios.size(); ++i)
    ratios[i] = below_[i] > 0 ? above_[i] / below_[i] : 0;
  return ratios;
}

ThresholdRatio::ThresholdRatio(ThresholdOptions options, const char* default_name)
    : options_(checked_thresholds(std::move(options), default_name)),
      ratios_(options_.thresholds.size()) {}

Precision::Precision(ThresholdOptions options) : ThresholdRatio(std::move(options), "precision") {}

Array Precision::summary(const Array& prediction, const Array& label, const Array& weights) const {
  ThresholdSums sums = threshold_sums(options(), prediction, label, weights);
  return stack({sums.true_positives, sums.predicted}, 0);
}

Recall::Recall(ThresholdOptions options) : ThresholdRatio(std::move(options), "recall") {}

Array Recall::summary(const Array& prediction, const Array& label, const Array& weights) const {
  ThresholdSums sums = threshold_sums(options(), prediction, label, weights);
  return stack({sums.true_positives, sums.positives}, 0);
}

Array Calibration::summary(const Array& prediction, const Array& label,
                           const Array& weights) const {
  FlatExamples all = flat_examples(name_, prediction, label, weights);
  return stack({sum(all.prediction * all.weights), sum(all.label * all.weights)}, 0);
}

}  // namespace cairn::nn
