#include "tools/job_objective.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "nn/classification_metrics.h"
#include "nn/losses.h"
#include "nn/ranking_losses.h"
#include "nn/ranking_metrics.h"
#include "nn/regression_metrics.h"

namespace cairn::tools {
namespace {

std::unique_ptr<nn::Metric> metric_of_classes(const std::string& name) {
  if (name == "accuracy") return std::make_unique<nn::SparseCategoricalAccuracy>(name);
  return std::make_unique<nn::MeanMetric>(
      name,
      [](const Array& prediction, const Array& label) {
        return nn::sparse_categorical_cross_entropy(prediction, label);
      },
      nn::Direction::kFalls);
}

// "ndcg@10" is ndcg of the first 10; of the whole list k is 0.
struct ListMetricName {
  std::string base;
  std::int64_t k = 0;
};

ListMetricName list_metric_name(const std::string& name) {
  constexpr std::int64_t kMost = 1 << 20;
  const std::size_t at = name.find('@');
  if (at == std::string::npos) return {name};
  std::int64_t k = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + at + 1, last, k);
  const bool good = error == std::errc() && end == last && k >= 1 && k <= kMost;
  return good ? ListMetricName{name.substr(0, at), k} : ListMetricName{};
}

std::unique_ptr<nn::Metric> metric_of_lists(const std::string& name) {
  const auto [base, k] = list_metric_name(name);
  if (base == "grouped_auc") return std::make_unique<nn::GroupedAuc>(name);
  if (base == "ndcg") return std::make_unique<nn::Ndcg>(nn::NdcgOptions{.k = k});
  if (base == "mrr") return std::make_unique<nn::Mrr>(nn::TopOptions{.k = k});
  if (base == "recall") return std::make_unique<nn::RecallAtK>(nn::TopOptions{.k = k});
  CAIRN_CHECK(base == "hit_rate", "a metric that was not verified: ", name);
  return std::make_unique<nn::HitRate>(nn::TopOptions{.k = k});
}

// "precision@0.3": the threshold above which an example counts as positive; nothing: the name has
// none that is possible.
std::optional<float> threshold_of(const std::string& name) {
  const std::size_t at = name.find('@');
  if (at == std::string::npos) return 0.5f;
  float threshold = -1;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + at + 1, last, threshold);
  const bool good = error == std::errc() && end == last && threshold >= 0 && threshold < 1;
  return good ? std::optional(threshold) : std::nullopt;
}

std::unique_ptr<nn::Metric> metric_at_threshold(const std::string& name) {
  const std::string base = name.substr(0, name.find('@'));
  const float threshold = threshold_of(name).value_or(0.5f);
  nn::ThresholdOptions options;
  options.thresholds = {threshold};
  options.name = name;
  if (base == "precision") return std::make_unique<nn::Precision>(options);
  if (base == "recall") return std::make_unique<nn::Recall>(options);
  CAIRN_CHECK(base == "accuracy", "a metric that was not verified: ", name);
  return std::make_unique<nn::BinaryAccuracy>(threshold, name);
}

std::unique_ptr<nn::Metric> make_metric(const std::string& objective, const std::string& name) {
  if (objective == "multiclass") return metric_of_classes(name);
  if (objective == "ranking" || objective == "retrieval") return metric_of_lists(name);
  if (name == "rmse") return std::make_unique<nn::RootMeanSquaredError>(name);
  if (name == "mae") return std::make_unique<nn::MeanAbsoluteError>(name);
  if (name == "mse") return std::make_unique<nn::MeanSquaredError>(name);
  if (name == "accuracy") return std::make_unique<nn::Accuracy>();
  if (name == "logloss") return std::make_unique<nn::LogLoss>();
  if (name == "calibration") return std::make_unique<nn::Calibration>();
  if (name == "pr_auc")
    return std::make_unique<nn::Auc>(
        nn::AucOptions{.curve = nn::Curve::kPrecisionRecall, .name = name});
  if (name == "auc") return std::make_unique<nn::Auc>();
  return metric_at_threshold(name);
}

}  // namespace

const std::vector<std::string>& objectives() {
  static const std::vector<std::string> all = {"binary", "regression", "multiclass", "ranking",
                                               "retrieval"};
  return all;
}

const std::vector<std::string>& regression_losses() {
  static const std::vector<std::string> all = {"mse", "huber", "mae"};
  return all;
}

const std::vector<std::string>& ranking_losses() {
  static const std::vector<std::string> all = {"softmax", "bpr"};
  return all;
}

std::vector<std::string> metrics_of(const std::string& objective) {
  if (objective == "retrieval") return {"recall@10", "recall@100", "ndcg@10", "mrr"};
  if (objective == "ranking") return {"ndcg@10", "grouped_auc", "hit_rate@10", "recall@10"};
  if (objective == "regression") return {"rmse", "mae", "mse"};
  if (objective == "multiclass") return {"accuracy", "logloss"};
  return {"auc", "accuracy", "logloss"};
}

std::vector<std::string> known_metrics(const std::string& objective) {
  std::vector<std::string> known = metrics_of(objective);
  if (objective == "binary")
    known.insert(known.end(), {"pr_auc", "calibration", "precision", "recall", "precision@0.3",
                               "recall@0.3", "accuracy@0.3"});
  if (objective == "ranking")
    known.insert(known.end(), {"ndcg", "ndcg@5", "mrr", "mrr@10", "hit_rate@1", "recall@5"});
  return known;
}

bool is_known_metric(const std::string& objective, const std::string& metric) {
  if (std::ranges::count(known_metrics(objective), metric) > 0) return true;
  if (objective == "binary" && metric.find('@') != std::string::npos) {
    const std::string of = metric.substr(0, metric.find('@'));
    return (of == "precision" || of == "recall" || of == "accuracy") && threshold_of(metric);
  }
  const bool of_lists = objective == "ranking" || objective == "retrieval";
  const std::string base =
      of_lists && metric.find('@') != std::string::npos ? list_metric_name(metric).base : "";
  return base == "ndcg" || base == "mrr" || base == "hit_rate" || base == "recall";
}

std::vector<std::string> judged_metrics(const Job& job) {
  return job.evaluation.metrics.empty() ? metrics_of(job.model.objective) : job.evaluation.metrics;
}

nn::Direction direction_of(const Job& job, const std::string& metric) {
  return make_metric(job.model.objective, metric)->direction();
}

nn::NeededLabels needed_labels(const Job& job, const std::string& metric) {
  return make_metric(job.model.objective, metric)->needed_labels();
}

Objective::Objective(const Job& job, LabelScale scale)
    : objective_(job.model.objective),
      loss_(job.model.loss),
      huber_delta_(static_cast<float>(job.model.huber_delta)),
      scale_(scale),
      label_(job.data.truth),
      class_weights_(job.model.class_weights.begin(), job.model.class_weights.end()),
      metrics_(judged_metrics(job)) {}

Array Objective::truth(const Array& label) const {
  if (objective_ == "multiclass")
    return label.dtype() == DType::kInt64 ? label : cast(label, DType::kInt64);
  const Array number = label.dtype() == DType::kFloat32 ? label : cast(label, DType::kFloat32);
  if (label_.above) return cast(number > Array(static_cast<float>(*label_.above)), DType::kFloat32);
  if (label_.below) return cast(number < Array(static_cast<float>(*label_.below)), DType::kFloat32);
  return number;
}

Array Objective::losses(const Array& outputs, const Array& truth, const Array& groups) const {
  if (objective_ == "ranking")
    return loss_ == "bpr" ? nn::grouped_bpr(outputs, truth, groups)
                          : nn::grouped_softmax(outputs, truth, groups);
  if (objective_ == "multiclass")
    return weighted(nn::sparse_softmax_cross_entropy(outputs, truth), truth);
  if (objective_ == "binary") return weighted(nn::sigmoid_cross_entropy(outputs, truth), truth);
  const bool scaled = scale_.mean != 0 || scale_.stddev != 1;
  const Array learnt = scaled ? (truth - scale_.mean) * (1 / scale_.stddev) : truth;
  if (loss_ == "huber") return nn::huber(outputs, learnt, huber_delta_ / scale_.stddev);
  return loss_ == "mae" ? nn::mean_absolute_error(outputs, learnt)
                        : nn::mean_squared_error(outputs, learnt);
}

// A label between 0 and 1 counts as much of each class as it is.
Array Objective::weighted(const Array& losses, const Array& truth) const {
  if (class_weights_.empty()) return losses;
  if (objective_ == "binary")
    return losses * (truth * (class_weights_[1] - class_weights_[0]) + class_weights_[0]);
  const auto n = static_cast<std::int64_t>(class_weights_.size());
  return losses * gather(Array(Tensor::of<float>({n}, class_weights_)), truth);
}

Array Objective::prediction(const Array& outputs) const {
  if (objective_ == "multiclass") return softmax(outputs);
  if (objective_ == "binary") return nn::probability(outputs);
  const Array number = reshape(outputs, {-1});
  return scale_.mean == 0 && scale_.stddev == 1 ? number : number * scale_.stddev + scale_.mean;
}

std::vector<std::unique_ptr<nn::Metric>> Objective::metrics() const {
  std::vector<std::unique_ptr<nn::Metric>> all;
  for (const std::string& name : metrics_) all.push_back(make_metric(objective_, name));
  return all;
}

}  // namespace cairn::tools
