// cairn.nn: metrics.
#include "metrics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "losses.h"
#include "nn/metrics/best_threshold.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

template <typename M>
struct MetricOf : MetricObject {
  using MetricObject::MetricObject;
  M& own() const { return static_cast<M&>(get()); }
};
template <typename M>
using MetricClass = nb::class_<MetricOf<M>, MetricObject>;

template <typename M>
MetricClass<M> metric_class(nb::module_& m, const char* name, const char* doc) {
  return {m, name, nb::type_slots(collected<MetricObject>()), doc};
}
template <typename M, typename... A>
void make(MetricOf<M>* self, A&&... arguments) {
  new (self) MetricOf<M>(std::make_shared<M>(std::forward<A>(arguments)...), Kept());
}
template <typename M>
void named_metric(nb::module_& m, const char* name, const char* default_name, const char* doc) {
  metric_class<M>(m, name, doc)
      .def(
          "__init__", [](MetricOf<M>* self, const std::string& given) { make(self, given); },
          "name"_a = default_name);
}

nn::Direction direction_of(const std::optional<std::string>& name) {
  if (!name) return nn::Direction::kUnknown;
  if (*name == "rises" || *name == "max") return nn::Direction::kRises;
  if (*name == "falls" || *name == "min") return nn::Direction::kFalls;
  throw InvalidArgumentError(
      str("the direction of a metric is \"rises\", \"falls\" or None, not \"", *name, "\""));
}
std::optional<std::string> direction_name(nn::Direction direction) {
  if (direction == nn::Direction::kRises) return "rises";
  if (direction == nn::Direction::kFalls) return "falls";
  return std::nullopt;
}

nn::MeanMetric::Function called_values(nb::handle function, Kept& kept) {
  return [function = kept.keep(function)](const Array& prediction, const Array& label) {
    const Acquired here;
    const Array values = array_of(call_recorded(function, prediction, label));
    return values.dtype() == DType::kBool ? cast(values, DType::kFloat32) : values;
  };
}

Array maybe(nb::handle object) { return object.is_none() ? Array() : array_of(object); }

void bind_base(nb::module_& m) {
  nb::class_<MetricObject>(m, "Metric", nb::type_slots(collected<MetricObject>()),
                           R"(What is told of a model beside its loss, by name.

>>> metric = cairn.nn.Metric("accuracy")
>>> metric.update([0.9, 0.2, 0.8], [1, 0, 0])
>>> round(metric.result(), 4)
0.6667)")
      .def(
          "__init__",
          [](MetricObject* self, const std::string& name) {
            new (self) MetricObject(nn::make_metric(name), Kept());
          },
          "name"_a)
      .def_prop_ro(
          "name", [](const MetricObject& self) { return self.get().name(); }, "As logs have it.")
      .def_prop_ro(
          "direction",
          [](const MetricObject& self) { return direction_name(self.get().direction()); },
          "\"rises\" or \"falls\" as a model gets better; None: neither, or it is not known.")
      .def(
          "summary",
          [](const MetricObject& self, ArrayLike prediction, ArrayLike label, nb::handle weights) {
            return self.get().summary(prediction, label, maybe(weights));
          },
          "prediction"_a, "label"_a, "weights"_a = nb::none(),
          nb::sig("def summary(self, prediction: cairn.typing.ArrayLike, label: "
                  "cairn.typing.ArrayLike, weights: cairn.typing.ArrayLike | None = None) -> "
                  "cairn._cairn.Array"),
          "What a step records of its batch; the sum of summaries is the summary of all.")
      .def(
          "add",
          [](MetricObject& self, ArrayLike summary) { self.get().add(tensor_of(summary.object)); },
          "summary"_a, "Adds the summary of a batch.")
      .def(
          "update",
          [](MetricObject& self, ArrayLike prediction, ArrayLike label, nb::handle weights) {
            const Array summary = self.get().summary(prediction, label, maybe(weights));
            self.get().add(released([&] { return summary.eval(); }));
          },
          "prediction"_a, "label"_a, "weights"_a = nb::none(),
          nb::sig("def update(self, prediction: cairn.typing.ArrayLike, label: "
                  "cairn.typing.ArrayLike, weights: cairn.typing.ArrayLike | None = None) -> None"),
          "Adds a batch whose values are at hand.")
      .def(
          "result", [](const MetricObject& self) { return self.get().result(); },
          "Of all that was added; NaN while it is undefined.")
      .def(
          "reset", [](MetricObject& self) { self.get().reset(); }, "As if nothing had been added.")
      .def("__repr__", [](const MetricObject& self) {
        return str("<cairn.nn.Metric \"", self.get().name(), "\">");
      });
}

void bind_own(nb::module_& m) {
  metric_class<nn::MeanMetric>(m, "MeanMetric",
                               R"(The mean of what a function of prediction and label records.

>>> def within(prediction, label):
...     return cairn.abs(prediction - label) <= 1.0
>>> within = cairn.nn.MeanMetric(within, direction="rises")
>>> within.update([1.0, 5.0], [1.5, 1.0])
>>> within.result()
0.5)")
      .def(
          "__init__",
          [](MetricOf<nn::MeanMetric>* self, nb::handle function, const std::string& name,
             const std::optional<std::string>& direction) {
            Kept kept;
            auto values = called_values(function, kept);
            auto metric = std::make_shared<nn::MeanMetric>(
                name.empty() ? name_of_function(function, "metric") : name, std::move(values),
                direction_of(direction));
            new (self) MetricOf<nn::MeanMetric>(std::move(metric), std::move(kept));
          },
          "function"_a, "name"_a = "", "direction"_a = nb::none(),
          nb::sig("def __init__(self, function: collections.abc.Callable[[cairn._cairn.Array, "
                  "cairn._cairn.Array], cairn._cairn.Array], name: str = '', direction: str | None "
                  "= None) -> None"));
  metric_class<nn::ListMetric>(
      m, "ListMetric",
      R"(The mean over lists of what a function of scores [b, n] and label records.

It returns values [b] and counts [b], 1 where the list counts and 0 where it does not.

>>> def best(scores, label):
...     highest = cairn.reduce_max(scores, axis=1)
...     return highest, cairn.reduce_max(label, axis=1)
>>> metric = cairn.nn.ListMetric(best)
>>> metric.update([[0.5, 0.25]], [[1.0, 0.0]])
>>> metric.result()
0.5)")
      .def(
          "__init__",
          [](MetricOf<nn::ListMetric>* self, nb::handle function, const std::string& name,
             const std::optional<std::string>& direction) {
            Kept kept;
            auto values = [function = kept.keep(function)](const std::string&, const Array& scores,
                                                           const Array& label) {
              const Acquired here;
              const nb::object made = call_recorded(function, scores, label);
              if (!nb::isinstance<nb::tuple>(made) || nb::len(made) != 2)
                throw nb::type_error("the function of a ListMetric returns (values, counts)");
              return nn::ListMetric::Values{.values = array_of(nb::object(made[0])),
                                            .counts = array_of(nb::object(made[1]))};
            };
            auto metric = std::make_shared<nn::ListMetric>(
                name.empty() ? name_of_function(function, "metric") : name, std::move(values),
                direction_of(direction));
            new (self) MetricOf<nn::ListMetric>(std::move(metric), std::move(kept));
          },
          "function"_a, "name"_a = "", "direction"_a = nb::none(),
          nb::sig("def __init__(self, function: collections.abc.Callable[[cairn._cairn.Array, "
                  "cairn._cairn.Array], tuple[cairn._cairn.Array, cairn._cairn.Array]], name: str "
                  "= '', direction: str | None = None) -> None"));
}

void bind_classification(nb::module_& m) {
  metric_class<nn::Auc>(m, "Auc", R"(The area under the ROC curve, or that of precision over recall.

>>> metric = cairn.nn.Auc()
>>> metric.update([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
>>> metric.result()
0.75)")
      .def(
          "__init__",
          [](MetricOf<nn::Auc>* self, std::int64_t buckets, const std::string& curve,
             const std::string& name) {
            if (curve != "roc" && curve != "ROC" && curve != "pr" && curve != "PR")
              throw InvalidArgumentError(
                  str("the curve of an AUC is \"roc\" or \"pr\", not \"", curve, "\""));
            const bool roc = curve == "roc" || curve == "ROC";
            make(self, nn::AucOptions{.buckets = buckets,
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
              make(self, threshold, given);
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
              make(self, k, given);
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
              make(self,
                   nn::ThresholdOptions{
                       .thresholds = std::move(thresholds), .class_id = class_id, .name = given});
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
                return make(self,
                            nn::BestThresholdOptions{.goal = value, .least = least, .name = name});
            throw InvalidArgumentError(
                str("the goal is \"f1\", \"accuracy\", \"balanced_accuracy\", \"recall\" or "
                    "\"precision\", not \"",
                    goal, "\""));
          },
          "goal"_a = "f1", "least"_a = 0.0, "name"_a = "threshold");
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
            make(self, nn::NdcgOptions{
                           .k = k,
                           .gain = gain == "linear" ? nn::Gain::kLinear : nn::Gain::kExponential,
                           .name = name});
          },
          "k"_a = 0, "gain"_a = "exponential", "name"_a = "");
  const auto top = [&]<typename M>(const char* name, const char* doc, std::type_identity<M>) {
    metric_class<M>(m, name, doc)
        .def(
            "__init__",
            [](MetricOf<M>* self, std::int64_t k, const std::string& given) {
              make(self, nn::TopOptions{.k = k, .name = given});
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

std::shared_ptr<nn::Metric> metric_of(nb::handle metric, Kept& kept) {
  if (nb::isinstance<MetricObject>(metric)) {
    kept.keep(metric);
    return nb::cast<const MetricObject&>(metric).shared();
  }
  if (nb::isinstance<nb::str>(metric)) return nn::make_metric(nb::cast<std::string>(metric));
  if (PyCallable_Check(metric.ptr()) == 0)
    throw nb::type_error(
        "a metric is a name, one of cairn.nn's, or a function of prediction and label");
  return std::make_shared<nn::MeanMetric>(name_of_function(metric, "metric"),
                                          called_values(metric, kept));
}

void bind_metrics(nb::module_& m) {
  nb::module_ nn = nb::borrow<nb::module_>(m.attr("nn"));
  bind_base(nn);
  bind_own(nn);
  bind_classification(nn);
  bind_thresholds(nn);
  bind_regression_and_ranking(nn);
  nb::class_<nn::Mean>(nn, "Mean", R"(The mean of any values.

>>> loss = cairn.nn.Mean("loss")
>>> loss.update([1.0, 3.0])
>>> loss.result()
2.0)")
      .def(nb::init<std::string>(), "name"_a = "mean")
      .def_prop_ro("name", &nn::Mean::name, "As it was given.")
      .def(
          "summary",
          [](const nn::Mean& self, ArrayLike values, nb::handle weights) {
            return self.summary(values, maybe(weights));
          },
          "values"_a, "weights"_a = nb::none(),
          nb::sig("def summary(self, values: cairn.typing.ArrayLike, weights: "
                  "cairn.typing.ArrayLike | None = None) -> cairn._cairn.Array"))
      .def(
          "add", [](nn::Mean& self, ArrayLike summary) { self.add(tensor_of(summary.object)); },
          "summary"_a, "Adds the summary of a batch.")
      .def(
          "update",
          [](nn::Mean& self, ArrayLike values, nb::handle weights) {
            const Array summary = self.summary(values, maybe(weights));
            self.add(released([&] { return summary.eval(); }));
          },
          "values"_a, "weights"_a = nb::none(),
          nb::sig("def update(self, values: cairn.typing.ArrayLike, weights: "
                  "cairn.typing.ArrayLike | None = None) -> None"),
          "Adds values that are at hand.")
      .def("result", &nn::Mean::result, "NaN while nothing was added.")
      .def("reset", &nn::Mean::reset, "As if nothing had been added.");
  nn.def("metric_names", &nn::metric_names,
         "The names of metrics.\n\n>>> \"auc\" in cairn.nn.metric_names()\nTrue");
}

}  // namespace cairn::python
