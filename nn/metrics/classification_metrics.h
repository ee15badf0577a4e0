// Metrics of classifiers, beside those of nn/metrics/metrics.h, whose conventions hold here.
//
// Predictions are probabilities of the positive class, or a score for each of c classes. A label
// counts as positive above one half.
//   Errors  InvalidArgument: shapes that do not fit, when the summary is recorded; options that
//           make no sense, at once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/metrics/metrics.h"

namespace cairn::nn {

// ---- the share of examples that are classified correctly ----

// By a threshold, as Accuracy: [b], [b, 1] or [b, d].
class BinaryAccuracy final : public MeanMetric {
 public:
  explicit BinaryAccuracy(float threshold = 0.5f, const std::string& name = "binary_accuracy");
  MetricInput input(const Array& prediction) const override;
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<BinaryAccuracy>(threshold_, name());
  }

 private:
  float threshold_;
};
// The highest of the scores [b, c] is where the label [b, c] has its highest number.
class CategoricalAccuracy final : public MeanMetric {
 public:
  explicit CategoricalAccuracy(const std::string& name = "categorical_accuracy");
};
// The same for a label of class ids, int32 or int64, [b] or [b, 1].
class SparseCategoricalAccuracy final : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracy(const std::string& name = "sparse_categorical_accuracy");
};
// Fewer than k scores are above that of the right class, so of equal scores at the border all are
// in, as in the reference. A row that holds a NaN counts as wrong.
class TopKCategoricalAccuracy final : public MeanMetric {
 public:
  explicit TopKCategoricalAccuracy(std::int64_t k = 5,
                                   const std::string& name = "top_k_categorical_accuracy");
};
class SparseTopKCategoricalAccuracy final : public MeanMetric {
 public:
  explicit SparseTopKCategoricalAccuracy(
      std::int64_t k = 5, const std::string& name = "sparse_top_k_categorical_accuracy");
};

// ---- precision and recall at thresholds ----

// The sums of both metrics: two for each threshold, and their ratio. The ratio is 0 where the
// second sum is 0, as in the reference, and NaN while nothing was added.
class ThresholdRatios {
 public:
  explicit ThresholdRatios(std::size_t thresholds) : above_(thresholds), below_(thresholds) {}
  void add(const Tensor& summary, const std::string& metric);
  // InvalidArgument: another number of thresholds.
  void merge(const ThresholdRatios& other, const std::string& metric);
  std::vector<double> results() const;
  void reset() { *this = ThresholdRatios(above_.size()); }

 private:
  std::vector<double> above_, below_;
  bool added_ = false;
};

struct ThresholdOptions {
  // An example is predicted positive above the threshold.
  std::vector<float> thresholds = {0.5f};
  // The only column of predictions and labels [b, c] that counts; if unset, all numbers count.
  std::optional<std::int64_t> class_id = {};
  std::string name = {};  // "precision" or "recall", if empty
};

// For each threshold the ratio of two counts. Summary [2, thresholds]: the two counts.
class ThresholdRatio : public Metric {
 public:
  const std::string& name() const override { return options_.name; }
  Direction direction() const override { return Direction::kRises; }
  MetricInput input(const Array&) const override { return MetricInput::kProbabilities; }
  void add(const Tensor& summary) override { ratios_.add(summary, name()); }
  double result() const override { return results().front(); }  // at the first threshold
  std::vector<double> results() const { return ratios_.results(); }
  void reset() override { ratios_.reset(); }

 protected:
  ThresholdRatio(ThresholdOptions options, const char* default_name);
  void merge_ratios(const ThresholdRatio& other) { ratios_.merge(other.ratios_, name()); }
  const ThresholdOptions& options() const { return options_; }

 private:
  ThresholdOptions options_;
  ThresholdRatios ratios_;
};

// The share of the examples predicted positive that are positive. Summary: true positives,
// predicted positives.
class Precision final : public ThresholdRatio {
 public:
  explicit Precision(ThresholdOptions options = {});
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  void merge(const Precision& other) { merge_ratios(other); }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Precision>(options()); }
};

// The share of the positive examples that are predicted positive. Summary: true positives,
// positives.
class Recall final : public ThresholdRatio {
 public:
  explicit Recall(ThresholdOptions options = {});
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  void merge(const Recall& other) { merge_ratios(other); }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Recall>(options()); }
};

// ---- calibration ----

// The sum of the predictions over the sum of the labels: 1 where as many clicks come as were
// predicted, above 1 where too many were. NaN until a label above 0 was seen. Summary [2]: the two.
//   Source  He et al., "Practical lessons from predicting clicks on ads at Facebook", ADKDD 2014.
class Calibration final : public Metric {
 public:
  explicit Calibration(std::string name = "calibration") : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  NeededLabels needed_labels() const override { return NeededLabels::kPositive; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  MetricInput input(const Array&) const override { return MetricInput::kProbabilities; }
  void add(const Tensor& summary) override { ratio_.add(summary, name_); }
  void merge(const Calibration& other) { ratio_.merge(other.ratio_); }
  double result() const override { return ratio_.result(); }
  void reset() override { ratio_.reset(); }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Calibration>(name_); }

 private:
  std::string name_;
  MeanAccumulator ratio_;
};

// ---- what they are made of, for metrics of one's own: 1 or 0 for each example, float32 [b] ----
// The mean over the last axis of predictions [b, d].
Array binary_matches(const Array& prediction, const Array& label, float threshold = 0.5f);
Array categorical_matches(const Array& prediction, const Array& label);
Array sparse_categorical_matches(const Array& prediction, const Array& label);
Array top_k_matches(const Array& prediction, const Array& label, std::int64_t k);
Array sparse_top_k_matches(const Array& prediction, const Array& label, std::int64_t k);

}  // namespace cairn::nn
