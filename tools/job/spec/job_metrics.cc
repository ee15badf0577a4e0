#include "tools/job/spec/job_metrics.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "nn/losses/losses.h"
#include "nn/metrics/classification_metrics.h"
#include "nn/metrics/metric_names.h"
#include "nn/metrics/ranking_metrics.h"
#include "nn/metrics/regression_metrics.h"

namespace cairn::tools {
namespace {

using MetricPointer = std::unique_ptr<nn::Metric>;

// "ndcg@10": the name, and what stands behind the @.
struct NameParts {
  std::string base;
  std::optional<std::string> behind;
};

NameParts parts_of(const std::string& name) {
  const std::size_t at = name.find('@');
  if (at == std::string::npos) return {name, std::nullopt};
  return {name.substr(0, at), name.substr(at + 1)};
}

template <typename T>
std::optional<T> number_in(const std::string& text) {
  T number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

// Without an @ it is `otherwise`; nothing: what stands behind it is no such number.
std::optional<std::int64_t> first_k(const NameParts& name, std::int64_t otherwise) {
  constexpr std::int64_t kMost = 1 << 20;
  if (!name.behind) return otherwise;
  const auto k = number_in<std::int64_t>(*name.behind);
  return k && *k >= 1 && *k <= kMost ? k : std::nullopt;
}

// The probability above which an example counts as positive.
std::optional<float> threshold_of(const NameParts& name) {
  if (!name.behind) return 0.5f;
  const auto threshold = number_in<float>(*name.behind);
  return threshold && *threshold >= 0 && *threshold < 1 ? threshold : std::nullopt;
}

// Null: there is no such metric.
MetricPointer metric_of_some_lists(const std::string& objective, const std::string& name) {
  const NameParts parts = parts_of(name);
  if (name == "grouped_auc" && objective != "retrieval")
    return std::make_unique<nn::GroupedAuc>(name);
  const std::optional<std::int64_t> k = first_k(parts, 0);
  if (!k) return nullptr;
  if (parts.base == "ndcg") return std::make_unique<nn::Ndcg>(nn::NdcgOptions{.k = *k});
  if (parts.base == "mrr") return std::make_unique<nn::Mrr>(nn::TopOptions{.k = *k});
  if (parts.base == "hit_rate") return std::make_unique<nn::HitRate>(nn::TopOptions{.k = *k});
  // For a binary model, "recall" is the recall at a threshold: metric_at_threshold().
  if (parts.base == "recall" && objective != "binary")
    return std::make_unique<nn::RecallAtK>(nn::TopOptions{.k = *k});
  return nullptr;
}

MetricPointer metric_at_threshold(const std::string& name) {
  const NameParts parts = parts_of(name);
  const std::optional<float> threshold = threshold_of(parts);
  if (!threshold) return nullptr;
  nn::ThresholdOptions options;
  options.thresholds = {*threshold};
  options.name = name;
  if (parts.base == "precision") return std::make_unique<nn::Precision>(options);
  if (parts.base == "recall") return std::make_unique<nn::Recall>(options);
  if (parts.base == "accuracy") return std::make_unique<nn::BinaryAccuracy>(*threshold, name);
  return nullptr;
}

MetricPointer metric_of_binary(const std::string& name) {
  if (name == "accuracy") return std::make_unique<nn::Accuracy>();
  for (const char* const known : {"auc", "pr_auc", "logloss", "calibration"})
    if (name == known) return nn::make_metric(name);
  return metric_at_threshold(name);
}

MetricPointer metric_of_numbers(const std::string& name) {
  if (name == "rmse") return std::make_unique<nn::RootMeanSquaredError>(name);
  if (name == "mae") return std::make_unique<nn::MeanAbsoluteError>(name);
  if (name == "mse") return std::make_unique<nn::MeanSquaredError>(name);
  return name == "mape" || name == "msle" ? nn::make_metric(name) : nullptr;
}

MetricPointer metric_of_classes(const std::string& name) {
  if (name == "accuracy") return std::make_unique<nn::SparseCategoricalAccuracy>(name);
  if (name == "logloss")
    return std::make_unique<nn::MeanMetric>(
        name,
        [](const Array& prediction, const Array& label) {
          return nn::sparse_categorical_cross_entropy(prediction, label);
        },
        nn::Direction::kFalls);
  const NameParts parts = parts_of(name);
  const std::optional<std::int64_t> k = first_k(parts, 5);
  if (parts.base != "top_k_accuracy" || !k) return nullptr;
  return std::make_unique<nn::SparseTopKCategoricalAccuracy>(*k, name);
}

// Null: there is no such metric.
MetricPointer find_metric(const std::string& objective, const std::string& name) {
  if (objective == "multiclass") return metric_of_classes(name);
  if (objective == "regression") return metric_of_numbers(name);
  MetricPointer of_examples = objective == "binary" ? metric_of_binary(name) : nullptr;
  return of_examples ? std::move(of_examples) : metric_of_some_lists(objective, name);
}

MetricPointer make_metric(const std::string& objective, const std::string& name) {
  MetricPointer made = find_metric(objective, name);
  CAIRN_CHECK(made != nullptr, "a metric that was not verified: ", name);
  return made;
}

}  // namespace

std::vector<std::string> metrics_of(const std::string& objective) {
  if (objective == "retrieval") return {"recall@10", "recall@100", "ndcg@10", "mrr"};
  if (objective == "ranking") return {"ndcg@10", "grouped_auc", "hit_rate@10", "recall@10"};
  if (objective == "regression") return {"rmse", "mae", "mse"};
  if (objective == "multiclass") return {"accuracy", "logloss"};
  return {"auc", "accuracy", "logloss"};
}

std::vector<std::string> known_metrics(const std::string& objective) {
  std::vector<std::string> known = metrics_of(objective);
  const auto add = [&known](std::initializer_list<const char*> more) {
    known.insert(known.end(), more.begin(), more.end());
  };
  if (objective == "binary")
    add({"pr_auc", "calibration", "precision", "recall", "precision@0.3", "recall@0.3",
         "accuracy@0.3", "grouped_auc", "ndcg@10", "mrr", "hit_rate@10"});
  if (objective == "regression") add({"mape", "msle"});
  if (objective == "multiclass") add({"top_k_accuracy", "top_k_accuracy@3"});
  if (objective == "ranking") add({"ndcg", "ndcg@5", "mrr", "mrr@10", "hit_rate@1", "recall@5"});
  return known;
}

bool is_known_metric(const std::string& objective, const std::string& metric) {
  return find_metric(objective, metric) != nullptr;
}

MetricOf metric_of(const std::string& objective, const std::string& metric) {
  if (objective == "ranking" || objective == "retrieval") return MetricOf::kLists;
  const bool listed = objective == "binary" && metric_of_some_lists(objective, metric) != nullptr;
  return listed ? MetricOf::kLists : MetricOf::kExamples;
}

std::vector<std::string> eval_metrics(const Job& job) {
  return job.evaluation.metrics.empty() ? metrics_of(job.model.objective) : job.evaluation.metrics;
}

std::string metric_of_lists(const Job& job) {
  for (std::string& name : eval_metrics(job))
    if (metric_of(job.model.objective, name) == MetricOf::kLists) return name;
  return "";
}

std::vector<std::unique_ptr<nn::Metric>> make_metrics(const Job& job, MetricOf of) {
  std::vector<std::unique_ptr<nn::Metric>> made;
  for (const std::string& name : eval_metrics(job))
    if (metric_of(job.model.objective, name) == of)
      made.push_back(make_metric(job.model.objective, name));
  return made;
}

MetricResults in_order(const Job& job, MetricResults some, const MetricResults& others) {
  some.insert(some.end(), others.begin(), others.end());
  const std::vector<std::string> order = eval_metrics(job);
  std::ranges::stable_sort(some, {}, [&order](const MetricResults::value_type& result) {
    return std::ranges::find(order, result.first) - order.begin();
  });
  return some;
}

nn::Direction direction_of(const Job& job, const std::string& metric) {
  return make_metric(job.model.objective, metric)->direction();
}

nn::NeededLabels needed_labels(const Job& job, const std::string& metric) {
  return make_metric(job.model.objective, metric)->needed_labels();
}

}  // namespace cairn::tools
