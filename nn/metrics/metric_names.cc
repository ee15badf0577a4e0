#include "nn/metrics/metric_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/graph/ops.h"
#include "core/tensor/element.h"
#include "nn/base/example_pairs.h"
#include "nn/losses/loss.h"
#include "nn/losses/losses.h"
#include "nn/metrics/classification_metrics.h"
#include "nn/metrics/metric_inputs.h"
#include "nn/metrics/ranking_metrics.h"
#include "nn/metrics/regression_metrics.h"

namespace cairn::nn {
namespace {

using MetricPointer = std::unique_ptr<Metric>;

// The metric asked for: the whole name, which the metric gets, and k, 0 if there is none.
struct AskedMetric {
  std::string name;
  std::int64_t k = 0;
};

struct KnownMetric {
  const char* name;
  std::vector<const char*> aliases;
  bool takes_k;
  MetricPointer (*make)(const AskedMetric&);
};

// Metrics whose constructor takes a name alone.
template <typename M>
MetricPointer named_metric(const AskedMetric& asked) {
  return std::make_unique<M>(asked.name);
}
template <typename M>
MetricPointer threshold_metric(const AskedMetric& asked) {
  return std::make_unique<M>(ThresholdOptions{.name = asked.name});
}
template <typename M>
MetricPointer list_metric(const AskedMetric& asked) {
  return std::make_unique<M>(TopOptions{.k = asked.k, .name = asked.name});
}
template <typename M>
MetricPointer top_k_metric(const AskedMetric& asked) {
  return std::make_unique<M>(asked.k == 0 ? 5 : asked.k, asked.name);
}

MetricPointer cosine_metric(const AskedMetric& asked) {
  return std::make_unique<MeanMetric>(
      asked.name,
      [](const Array& prediction, const Array& label) {
        return neg(cosine_similarity(prediction, label));
      },
      Direction::kRises);
}

MetricPointer area_metric(const AskedMetric& asked, Curve curve) {
  AucOptions options;
  options.curve = curve;
  options.name = asked.name;
  return std::make_unique<Auc>(options);
}

const std::vector<KnownMetric>& known_metrics() {
  static const std::vector<KnownMetric> known = {
      {"accuracy", {"acc", "Accuracy"}, false, named_metric<AnyAccuracy>},
      {"auc",
       {"AUC"},
       false,
       [](const AskedMetric& asked) { return area_metric(asked, Curve::kRoc); }},
      {"binary_accuracy",
       {"BinaryAccuracy"},
       false,
       [](const AskedMetric& asked) -> MetricPointer {
         return std::make_unique<BinaryAccuracy>(0.5f, asked.name);
       }},
      {"calibration", {}, false, named_metric<Calibration>},
      {"categorical_accuracy", {"CategoricalAccuracy"}, false, named_metric<CategoricalAccuracy>},
      {"cosine_similarity", {"CosineSimilarity"}, false, cosine_metric},
      {"grouped_auc", {"gauc"}, false, named_metric<GroupedAuc>},
      {"hit_rate", {}, true, list_metric<HitRate>},
      {"logloss", {}, false, named_metric<LogLoss>},
      {"mrr", {}, true, list_metric<Mrr>},
      {"ndcg",
       {},
       true,
       [](const AskedMetric& asked) -> MetricPointer {
         return std::make_unique<Ndcg>(NdcgOptions{.k = asked.k, .name = asked.name});
       }},
      {"pr_auc",
       {"prauc"},
       false,
       [](const AskedMetric& asked) { return area_metric(asked, Curve::kPrecisionRecall); }},
      {"precision", {"Precision"}, false, threshold_metric<Precision>},
      // "recall" is the recall of a binary model; "recall@10" is that of a list.
      {"recall",
       {"Recall"},
       true,
       [](const AskedMetric& asked) {
         return asked.k == 0 ? threshold_metric<Recall>(asked) : list_metric<RecallAtK>(asked);
       }},
      {"root_mean_squared_error",
       {"rmse", "RMSE", "RootMeanSquaredError"},
       false,
       named_metric<RootMeanSquaredError>},
      {"sparse_categorical_accuracy",
       {"SparseCategoricalAccuracy"},
       false,
       named_metric<SparseCategoricalAccuracy>},
      {"sparse_top_k_categorical_accuracy",
       {"SparseTopKCategoricalAccuracy"},
       true,
       top_k_metric<SparseTopKCategoricalAccuracy>},
      {"top_k_categorical_accuracy",
       {"TopKCategoricalAccuracy"},
       true,
       top_k_metric<TopKCategoricalAccuracy>},
  };
  return known;
}

const KnownMetric* find_metric(const std::string& name) {
  for (const KnownMetric& one : known_metrics())
    if (name == one.name ||
        std::find(one.aliases.begin(), one.aliases.end(), name) != one.aliases.end())
      return &one;
  return nullptr;
}

[[noreturn]] void refuse_metric(const std::string& name) {
  std::vector<std::string> names = metric_names();
  for (const KnownMetric& one : known_metrics())
    names.insert(names.end(), one.aliases.begin(), one.aliases.end());
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(str("there is no metric \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

bool is_one_number(const Array& x) { return x.rank() == 1 || (x.rank() == 2 && x.shape()[1] == 1); }

// The mean of a loss, which looks at the range of its predictions by itself.
class LossMetric final : public MeanMetric {
 public:
  LossMetric(std::string name, const Loss& loss)
      : MeanMetric(std::move(name), loss, Direction::kFalls), loss_(loss) {}
  MetricInput input(const Array&) const override {
    return loss_.input() == LossInput::kProbabilities ? MetricInput::kProbabilities
                                                      : MetricInput::kNumbers;
  }
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<LossMetric>(name(), loss_);
  }

 private:
  Loss loss_;
};

// The number after the @.
std::int64_t k_of(const std::string& name, std::size_t at) {
  const char *begin = name.data() + at + 1, *end = name.data() + name.size();
  std::int64_t k = 0;
  const auto [rest, error] = std::from_chars(begin, end, k);
  if (error != std::errc() || rest != end || k < 1)
    throw InvalidArgumentError(
        str("the metric \"", name, "\": a number of at least 1 is wanted after the @"));
  return k;
}

}  // namespace

AnyAccuracy::AnyAccuracy(const std::string& name)
    : MeanMetric(
          name,
          [name](const Array& prediction, const Array& label) {
            check_pair_defined(metric_text(name), prediction, label);
            if (is_one_number(prediction)) return binary_matches(prediction, label);
            return is_one_number(label) ? sparse_categorical_matches(prediction, label)
                                        : categorical_matches(prediction, label);
          },
          Direction::kRises) {}

MetricInput AnyAccuracy::input(const Array& prediction) const {
  return is_one_number(prediction) ? MetricInput::kProbabilities : MetricInput::kNumbers;
}

MetricPointer make_metric(const std::string& name) {
  AskedMetric asked{name};
  const std::size_t at = name.find('@');
  if (at != std::string::npos) asked.k = k_of(name, at);
  const std::string plain_name = name.substr(0, at);
  const KnownMetric* known = find_metric(plain_name);
  if (known == nullptr && !is_loss_name(plain_name)) refuse_metric(plain_name);
  if (asked.k != 0 && (known == nullptr || !known->takes_k))
    throw InvalidArgumentError(str("the metric \"", plain_name, "\" takes no @", asked.k));
  if (known != nullptr) return known->make(asked);
  return std::make_unique<LossMetric>(name, Loss(name));
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names = loss_names();
  for (const KnownMetric& one : known_metrics()) names.emplace_back(one.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace cairn::nn
