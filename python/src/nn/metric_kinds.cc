// cairn.nn: the kinds of metrics.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <type_traits>

#include "metrics.h"
#include "nn/metrics/best_threshold.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

void bind_classification(nb::module_& m) {
  metric_class<nn::Auc>(m, "Auc", R"(The area under the ROC curve, or that of precision over recall.

>>> metric = cairn.nn.Auc()
>>> metric.update([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
>>> metric.result()
0.75)")
      .def_prop_ro(
          "negatives", [](const MetricOf<nn::Auc>& self) { return self.own().negatives(); },
          "The weights of negatives, by buckets of their predictions.")
      .def_prop_ro(
          "positives", [](const MetricOf<nn::Auc>& self) { return self.own().positives(); },
          "The same of positives.")
      .def(
          "least_of",
          [](const MetricOf<nn::Auc>& self, double bucket) { return self.own().least_of(bucket); },
          "bucket"_a, "The least prediction of a bucket.")
      .def(
          "__init__",
          [](MetricOf<nn::Auc>* self, std::int64_t buckets, const std::string& curve,
             const std::string& name) {
            if (curve != "roc" && curve != "ROC" && curve != "pr" && curve != "PR")
              throw InvalidArgumentError(
                  str("the curve of an AUC is \"roc\" or \"pr\", not \"", curve, "\""));
            const bool roc = curve == "roc" || curve == "ROC";
            make_metric(self,
                        nn::AucOptions{.buckets = buckets,
                                       .curve = roc ? nn::Curve::kRoc : nn::Curve::kPrecisionRecall,
                                       .name = name});
          },
          nb::kw_only(), "buckets"_a = 16384, "curve"_a = "roc", "name"_a = "auc");
  const auto at_threshold = [&]<typename M>(const char* name, const char* default_name,
                                            const char* doc, std::type_identity<M>) {
    metric_class<M>(m, name, doc)
        .def(
            "__init__",
            [](MetricOf<M>* self, float threshold, const std::string& given) {
              make_metric(self, threshold, given);
            },
            "threshold"_a = 0.5, "name"_a = default_name);
  };
  at_threshold("Accuracy", "accuracy", R"(The share of examples on the right side of the threshold.

>>> metric = cairn.nn.Accuracy()
>>> metric.update([0.9, 0.2], [1, 1])
>>> metric.result()
0.5)",
               std::type_identity<nn::Accuracy>());
  at_threshold("BinaryAccuracy", "binary_accuracy", R"(The same, also of several numbers each.

>>> metric = cairn.nn.BinaryAccuracy()
>>> metric.update([[0.9, 0.2]], [[1, 1]])
>>> metric.result()
0.5)",
               std::type_identity<nn::BinaryAccuracy>());
  named_metric<nn::AnyAccuracy>(m, "AnyAccuracy", "accuracy",
                                R"(The accuracy that the shapes ask for.

>>> metric = cairn.nn.AnyAccuracy()
>>> metric.update([[0.9, 0.1]], [0])
>>> metric.result()
1.0)");
  named_metric<nn::LogLoss>(m, "LogLoss", "logloss", R"(The mean binary cross entropy.

>>> metric = cairn.nn.LogLoss()
>>> metric.update([0.5], [1])
>>> round(metric.result(), 4)
0.6931)");
  named_metric<nn::CategoricalAccuracy>(m, "CategoricalAccuracy", "categorical_accuracy",
                                        R"(Whether the highest score is where the label's is.

>>> metric = cairn.nn.CategoricalAccuracy()
>>> metric.update([[0.9, 0.1]], [[1.0, 0.0]])
>>> metric.result()
1.0)");
  named_metric<nn::SparseCategoricalAccuracy>(m, "SparseCategoricalAccuracy",
                                              "sparse_categorical_accuracy",
                                              R"(Whether the highest score is that of the class id.

>>> metric = cairn.nn.SparseCategoricalAccuracy()
>>> metric.update([[0.9, 0.1]], [1])
>>> metric.result()
0.0)");
  named_metric<nn::Calibration>(m, "Calibration", "calibration",
                                R"(The sum of the predictions over that of the labels.

>>> metric = cairn.nn.Calibration()
>>> metric.update([0.5, 0.5], [1, 1])
>>> metric.result()
0.5)");
  const auto top = [&]<typename M>(const char* name, const char* default_name, const char* doc,
                                   std::type_identity<M>) {
    metric_class<M>(m, name, doc)
        .def(
            "__init__",
            [](MetricOf<M>* self, std::int64_t k, const std::string& given) {
              make_metric(self, k, given);
            },
            "k"_a = 5, "name"_a = default_name);
  };
  top("TopKCategoricalAccuracy", "top_k_categorical_accuracy",
      R"(Whether the right class, of labels [b, c], is among the k highest scores.

>>> metric = cairn.nn.TopKCategoricalAccuracy(k=2)
>>> metric.update([[0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0]])
>>> metric.result()
1.0)",
      std::type_identity<nn::TopKCategoricalAccuracy>());
  top("SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy",
      R"(Whether the class id is among the k highest scores.

>>> metric = cairn.nn.SparseTopKCategoricalAccuracy(k=2)
>>> metric.update([[0.5, 0.3, 0.2]], [2])
>>> metric.result()
0.0)",
      std::type_identity<nn::SparseTopKCategoricalAccuracy>());
}

void bind_thresholds(nb::module_& m) {
  const auto ratio = [&]<typename M>(const char* name, const char* doc, std::type_identity<M>) {
    metric_class<M>(m, name, doc)
        .def(
            "__init__",
            [](MetricOf<M>* self, std::vector<float> thresholds,
               std::optional<std::int64_t> class_id, const std::string& given) {
              make_metric(self, nn::ThresholdOptions{.thresholds = std::move(thresholds),
                                                     .class_id = class_id,
                                                     .name = given});
            },
            "thresholds"_a = std::vector<float>{0.5f}, "class_id"_a = nb::none(), "name"_a = "")
        .def(
            "results", [](const MetricOf<M>& self) { return self.own().results(); },
            "At each threshold.");
  };
  ratio("Precision", R"(The share of the examples predicted positive that are positive.

>>> metric = cairn.nn.Precision()
>>> metric.update([0.9, 0.8], [1, 0])
>>> metric.result()
0.5)",
        std::type_identity<nn::Precision>());
  ratio("Recall", R"(The share of the positive examples that are predicted positive.

>>> metric = cairn.nn.Recall()
>>> metric.update([0.9, 0.2], [1, 1])
>>> metric.result()
0.5)",
        std::type_identity<nn::Recall>());
  metric_class<nn::BestThreshold>(m, "BestThreshold",
                                  R"(The probability above which examples are best called positive.

>>> metric = cairn.nn.BestThreshold(goal="accuracy")
>>> metric.update([0.2, 0.3, 0.8], [0, 0, 1])
>>> 0.3 <= metric.result() <= 0.8
True)")
      .def(
          "__init__",
          [](MetricOf<nn::BestThreshold>* self, const std::string& goal, double least,
             const std::string& name) {
            static constexpr std::pair<const char*, nn::ThresholdGoal> kGoals[] = {
                {"f1", nn::ThresholdGoal::kF1},
                {"accuracy", nn::ThresholdGoal::kAccuracy},
                {"balanced_accuracy", nn::ThresholdGoal::kBalancedAccuracy},
                {"recall", nn::ThresholdGoal::kRecall},
                {"precision", nn::ThresholdGoal::kPrecision}};
            for (const auto& [each, value] : kGoals)
              if (goal == each)
                return make_metric(
                    self, nn::BestThresholdOptions{.goal = value, .least = least, .name = name});
            throw InvalidArgumentError(
                str("the goal is \"f1\", \"accuracy\", \"balanced_accuracy\", \"recall\" or "
                    "\"precision\", not \"",
                    goal, "\""));
          },
          "goal"_a = "f1", "least"_a = 0.0, "name"_a = "threshold");
}

// For metrics of one's own.
void bind_matches(nb::module_& m) {
  m.def(
      "probability", [](ArrayLike logits) { return nn::probability(logits); }, "logits"_a,
      "sigmoid(logits) as [b].\n\n>>> cairn.nn.probability([[0.0]]).numpy()\narray([0.5], "
      "dtype=float32)");
  m.def(
      "binary_matches",
      [](ArrayLike prediction, ArrayLike label, float threshold) {
        return nn::binary_matches(prediction, label, threshold);
      },
      "prediction"_a, "label"_a, "threshold"_a = 0.5,
      "1 where an example is on the right side of the threshold, else 0.\n\n>>> "
      "cairn.nn.binary_matches([0.9, 0.2], [1, 1]).numpy()\narray([1., 0.], dtype=float32)");
  using Matches = Array (*)(const Array&, const Array&);
  using TopMatches = Array (*)(const Array&, const Array&, std::int64_t);
  const auto matches = [&](const char* name, Matches of, const char* doc) {
    m.def(
        name, [of](ArrayLike prediction, ArrayLike label) { return of(prediction, label); },
        "prediction"_a, "label"_a, doc);
  };
  const auto top_matches = [&](const char* name, TopMatches of, const char* doc) {
    m.def(
        name,
        [of](ArrayLike prediction, ArrayLike label, std::int64_t k) {
          return of(prediction, label, k);
        },
        "prediction"_a, "label"_a, "k"_a, doc);
  };
  matches("categorical_matches", nn::categorical_matches,
          "1 where the highest score is where the label's is, else 0.\n\n>>> "
          "cairn.nn.categorical_matches([[0.9, 0.1]], [[1.0, 0.0]]).numpy()\narray([1.], "
          "dtype=float32)");
  matches("sparse_categorical_matches", nn::sparse_categorical_matches,
          "1 where the highest score is that of the class id, else 0.\n\n>>> "
          "cairn.nn.sparse_categorical_matches([[0.9, 0.1]], [1]).numpy()\narray([0.], "
          "dtype=float32)");
  top_matches("top_k_matches", nn::top_k_matches,
              "1 where the right class is among the k highest scores, else 0.\n\n>>> "
              "cairn.nn.top_k_matches([[0.9, 0.1]], [[0.0, 1.0]], k=2).numpy()\narray([1.], "
              "dtype=float32)");
  top_matches("sparse_top_k_matches", nn::sparse_top_k_matches,
              "The same for a class id.\n\n>>> cairn.nn.sparse_top_k_matches([[0.9, 0.1]], [1], "
              "k=1).numpy()\narray([0.], dtype=float32)");
}

void bind_regression_and_ranking(nb::module_& m) {
  named_metric<nn::MeanSquaredError>(m, "MeanSquaredError", "mean_squared_error",
                                     R"(The mean of the squares of the errors.

>>> metric = cairn.nn.MeanSquaredError()
>>> metric.update([3.0], [1.0])
>>> metric.result()
4.0)");
  named_metric<nn::MeanAbsoluteError>(m, "MeanAbsoluteError", "mean_absolute_error",
                                      R"(The mean of the absolute errors.

>>> metric = cairn.nn.MeanAbsoluteError()
>>> metric.update([3.0], [1.0])
>>> metric.result()
2.0)");
  named_metric<nn::RootMeanSquaredError>(m, "RootMeanSquaredError", "root_mean_squared_error",
                                         R"(The root of the mean of the squares.

>>> metric = cairn.nn.RootMeanSquaredError()
>>> metric.update([3.0], [1.0])
>>> metric.result()
2.0)");
  named_metric<nn::GroupedAuc>(m, "GroupedAuc", "grouped_auc", R"(The exact AUC of each list.

>>> metric = cairn.nn.GroupedAuc()
>>> metric.update([[0.9, 0.1]], [[1.0, 0.0]])
>>> metric.result()
1.0)");
  metric_class<nn::Ndcg>(m, "Ndcg", R"(Discounted gains of the first k items, over the best order's.

>>> metric = cairn.nn.Ndcg()
>>> metric.update([[0.9, 0.1]], [[1.0, 0.0]])
>>> metric.result()
1.0)")
      .def(
          "__init__",
          [](MetricOf<nn::Ndcg>* self, std::int64_t k, const std::string& gain,
             const std::string& name) {
            if (gain != "exponential" && gain != "linear")
              throw InvalidArgumentError(
                  str("the gain is \"exponential\" or \"linear\", not \"", gain, "\""));
            make_metric(self, nn::NdcgOptions{.k = k,
                                              .gain = gain == "linear" ? nn::Gain::kLinear
                                                                       : nn::Gain::kExponential,
                                              .name = name});
          },
          "k"_a = 0, "gain"_a = "exponential", "name"_a = "");
  const auto top = [&]<typename M>(const char* name, const char* doc, std::type_identity<M>) {
    metric_class<M>(m, name, doc)
        .def(
            "__init__",
            [](MetricOf<M>* self, std::int64_t k, const std::string& given) {
              make_metric(self, nn::TopOptions{.k = k, .name = given});
            },
            "k"_a = 0, "name"_a = "");
  };
  top("RecallAtK", R"(The share of a list's relevant items that are among the first k.

>>> metric = cairn.nn.RecallAtK(k=1)
>>> metric.update([[0.9, 0.1]], [[1.0, 1.0]])
>>> metric.result()
0.5)",
      std::type_identity<nn::RecallAtK>());
  top("HitRate", R"(Whether a relevant item is among the first k.

>>> metric = cairn.nn.HitRate(k=1)
>>> metric.update([[0.9, 0.1]], [[1.0, 0.0]])
>>> metric.result()
1.0)",
      std::type_identity<nn::HitRate>());
  top("Mrr", R"(One over the rank of the first relevant item.

>>> metric = cairn.nn.Mrr()
>>> metric.update([[0.9, 0.1]], [[0.0, 1.0]])
>>> metric.result()
0.5)",
      std::type_identity<nn::Mrr>());
}

}  // namespace

void bind_metric_kinds(nb::module_& m) {
  bind_classification(m);
  bind_thresholds(m);
  bind_regression_and_ranking(m);
  bind_matches(m);
}

}  // namespace cairn::python
