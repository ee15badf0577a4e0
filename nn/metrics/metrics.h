// Streaming metrics: a step records a small summary of its batch, and the program adds the
// summaries up.
//
//     nn::Auc auc;
//     Function evaluate = strategy.function([&](Iterator input) {
//       ...
//       return auc.summary(nn::probability(logits), label);
//     });
//     auc.add(result);
//     ... auc.result();
//
// The metric object keeps no variable: summaries travel as outputs of closures, and those of
// several workers, or whole metrics of several processes, add up in any order to the same result.
// Here are the metrics of binary models and what all metrics are; more are in
// nn/metrics/classification_metrics.h, nn/metrics/regression_metrics.h and
// nn/metrics/ranking_metrics.h, and nn/metrics/metric_names.h makes them by their names in Keras.
//   Shapes  prediction and label: [b] or [b, 1], in any mixture, or [b, d], d predictions per
//           example; weights, if given, one per example.
//   Result  NaN while it is undefined: nothing was added, or AUC has seen one class only.
//   Thread  one.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

// Which way a metric moves as a model gets better.
enum class Direction : std::uint8_t {
  kUnknown,  // neither way, as a ratio that is best at 1; or the metric does not say
  kRises,
  kFalls,
};

// The labels without which a metric stays undefined, whatever the predictions are.
enum class NeededLabels : std::uint8_t { kAny, kPositive, kBothClasses };

// The kind of predictions that a metric takes.
enum class MetricInput : std::uint8_t {
  kNumbers,  // whatever the network gives
  // Probabilities: a step that finds a prediction outside of [0, 1] ends with InvalidArgument. A
  // model whose loss takes logits (nn::LossInput) gives such a metric what sigmoid() or softmax()
  // makes of them.
  kProbabilities,
};

// The interface of all metrics, for code that works with any, as the evaluation of `cairn train`.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual const std::string& name() const = 0;
  // A metric of a program's own that callbacks watch overrides it, or its watchers are given a
  // `mode` (model/callbacks.h).
  virtual Direction direction() const { return Direction::kUnknown; }
  virtual NeededLabels needed_labels() const { return NeededLabels::kAny; }
  // Recorded: the batch's summary, float32 of a shape that depends on the metric alone. The sum of
  // the summaries of several batches or replicas is the summary of them all.
  virtual Array summary(const Array& prediction, const Array& label,
                        const Array& weights = {}) const = 0;
  // The kind that the metric takes here; it may depend on the shape of `prediction`.
  virtual MetricInput input(const Array& /*prediction*/) const { return MetricInput::kNumbers; }
  // Adds the summary of one batch.
  //   Errors  InvalidArgument: it is not a summary of such a metric.
  virtual void add(const Tensor& summary) = 0;
  // The metric of all that was added since the last reset().
  virtual double result() const = 0;
  virtual void reset() = 0;
  // A metric of the same kind, options and name, to which nothing was added.
  virtual std::unique_ptr<Metric> clone() const = 0;
};

// sigmoid(logits) as [b], for metrics of binary models.
Array probability(const Array& logits);

// A weighted mean. Summary [2]: sum of values · weights, sum of weights.
class MeanAccumulator {
 public:
  void add(const Tensor& summary, const std::string& metric);
  // As if all that was added to `other` had been added here.
  void merge(const MeanAccumulator& other);
  double result() const;
  double count() const { return count_; }
  void reset() { *this = {}; }

 private:
  double total_ = 0, count_ = 0;
};

// The mean of any values: [b] or [b, 1].
class Mean {
 public:
  explicit Mean(std::string name = "mean") : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  Array summary(const Array& values, const Array& weights = {}) const;
  void add(const Tensor& summary) { mean_.add(summary, name_); }
  void merge(const Mean& other) { mean_.merge(other.mean_); }
  double result() const { return mean_.result(); }
  void reset() { mean_.reset(); }

 private:
  std::string name_;
  MeanAccumulator mean_;
};

// The mean of what a function of prediction and label records, [b] or [b, 1]: a metric of one's
// own. Summary [2].
//
//     nn::MeanMetric within("within_one", [](const Array& prediction, const Array& label) {
//       return cast(abs(prediction - label) <= 1.0f, DType::kFloat32);
//     }, nn::Direction::kRises);
class MeanMetric : public Metric {
 public:
  using Function = std::function<Array(const Array& prediction, const Array& label)>;

  //   Errors  InvalidArgument: the function is empty.
  MeanMetric(std::string name, Function values, Direction direction = Direction::kUnknown);
  const std::string& name() const override { return name_; }
  Direction direction() const override { return direction_; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  void add(const Tensor& summary) override { mean_.add(summary, name_); }
  void merge(const MeanMetric& other) { mean_.merge(other.mean_); }
  double result() const override { return mean_.result(); }
  void reset() override { mean_.reset(); }
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<MeanMetric>(name_, values_, direction_);
  }

 private:
  std::string name_;
  Function values_;
  Direction direction_;
  MeanAccumulator mean_;
};

// The share of examples that are classified correctly: the prediction is above the threshold
// exactly where the label is above one half. A threshold between 0 and 1 is one of probabilities,
// any other one of scores.
class Accuracy final : public Metric {
 public:
  explicit Accuracy(float threshold = 0.5f, std::string name = "accuracy")
      : name_(std::move(name)), threshold_(threshold) {}
  const std::string& name() const override { return name_; }
  Direction direction() const override { return Direction::kRises; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  MetricInput input(const Array& prediction) const override;
  void add(const Tensor& summary) override { mean_.add(summary, name_); }
  void merge(const Accuracy& other) { mean_.merge(other.mean_); }
  double result() const override { return mean_.result(); }
  void reset() override { mean_.reset(); }
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<Accuracy>(threshold_, name_);
  }

 private:
  std::string name_;
  float threshold_;
  MeanAccumulator mean_;
};

// The mean binary cross entropy in nats; probabilities are kept 1e-7 away from 0 and 1.
class LogLoss final : public Metric {
 public:
  explicit LogLoss(std::string name = "logloss") : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Direction direction() const override { return Direction::kFalls; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  MetricInput input(const Array&) const override { return MetricInput::kProbabilities; }
  void add(const Tensor& summary) override { mean_.add(summary, name_); }
  void merge(const LogLoss& other) { mean_.merge(other.mean_); }
  double result() const override { return mean_.result(); }
  void reset() override { mean_.reset(); }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<LogLoss>(name_); }

 private:
  std::string name_;
  MeanAccumulator mean_;
};

// The area under the ROC curve or the curve of precision over recall, from a histogram of
// predictions for each class. Summary [2, buckets]: weights of negatives, of positives.
//
// Buckets are even in sigmoid(logit / 4), so that the rare-event end, where all probabilities are
// small, is resolved as finely as the middle; examples in one bucket count as ties (one half). With
// the default number the result is within 1e-4 of the exact one unless most pairs of the two
// classes share a bucket. A summary that travels with every step, and not once per evaluation,
// should have fewer buckets.
//   Source  the area is the probability that a positive is ranked above a negative: Hanley, McNeil,
//           "The meaning and use of the area under a receiver operating characteristic (ROC)
//           curve", Radiology 143 (1982). Between two points of the precision-recall curve both
//           kinds of positives grow evenly, which makes no straight line: Davis, Goadrich, "The
//           relationship between precision-recall and ROC curves", ICML 2006.
enum class Curve : std::uint8_t {
  kRoc,              // true positive rate over false positive rate
  kPrecisionRecall,  // undefined until a positive was seen
};
struct AucOptions {
  std::int64_t buckets = 16'384;
  Curve curve = Curve::kRoc;
  std::string name = "auc";
};
class Auc final : public Metric {
 public:
  explicit Auc(AucOptions options = {});  // InvalidArgument: fewer than 2 buckets
  const std::string& name() const override { return options_.name; }
  Direction direction() const override { return Direction::kRises; }
  NeededLabels needed_labels() const override {
    return options_.curve == Curve::kRoc ? NeededLabels::kBothClasses : NeededLabels::kPositive;
  }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  MetricInput input(const Array&) const override { return MetricInput::kProbabilities; }
  void add(const Tensor& summary) override;
  void merge(const Auc& other);  // InvalidArgument: another number of buckets
  double result() const override;
  void reset() override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Auc>(options_); }
  // The histogram: the weight of each class by bucket, and the least prediction in a bucket, which
  // may be a fraction of one.
  const std::vector<double>& negatives() const { return negatives_; }
  const std::vector<double>& positives() const { return positives_; }
  double least_of(double bucket) const;

 private:
  double roc_area() const;
  double precision_recall_area() const;
  AucOptions options_;
  std::vector<double> negatives_, positives_;
};

}  // namespace cairn::nn
