// cairn.nn: metrics.
#include "metrics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "losses.h"
#include "nn/nn.h"
#include "refusing.h"

namespace cairn::python {
namespace {

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
  require_function(function, "a metric's values come of a function of prediction and label");
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
      .def_prop_ro(
          "needed_labels",
          [](const MetricObject& self) {
            const bool any = self.get().needed_labels() == nn::NeededLabels::kAny;
            return std::string(any ? "any" : "both_classes");
          },
          "\"both_classes\": the result is undefined unless there are examples of both.")
      .def(
          "input",
          [](const MetricObject& self, ArrayLike prediction) {
            switch (self.get().input(prediction)) {
              case nn::MetricInput::kNumbers: return std::string("numbers");
              case nn::MetricInput::kProbabilities: return std::string("probabilities");
            }
            return std::string();
          },
          "prediction"_a, "Whether it takes \"numbers\" or \"probabilities\".")
      .def(
          "clone",
          [](const MetricObject& self) { return new MetricObject(self.get().clone(), Kept()); },
          "Another one of the same kind, to which nothing was added.")
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

}  // namespace

std::shared_ptr<nn::Metric> metric_of(nb::handle metric, Kept& kept) {
  if (nb::isinstance<MetricObject>(metric)) {
    kept.keep(metric);
    return nb::cast<const MetricObject&>(metric).shared();
  }
  if (nb::isinstance<nb::str>(metric)) return nn::make_metric(nb::cast<std::string>(metric));
  require_object(metric, "a metric");
  require_function(metric,
                   "a metric is a name, one of cairn.nn's, or a function of prediction and label");
  return std::make_shared<nn::MeanMetric>(name_of_function(metric, "metric"),
                                          called_values(metric, kept));
}

void bind_metrics(nb::module_& m) {
  nb::module_ nn = nb::borrow<nb::module_>(m.attr("nn"));
  bind_base(nn);
  bind_own(nn);
  bind_metric_kinds(nn);
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
          "merge", [](nn::Mean& self, const nn::Mean& other) { self.merge(other); }, "other"_a,
          "As if all that was added to the other had been added here.")
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
