// cairn.Optimizer, and gradients by variable.
#include "optimizers.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/graph/custom_rule.h"
#include "layer_object.h"
#include "nn/nn.h"
#include "refusing.h"

namespace cairn::python {
namespace {

struct Clipping {
  std::optional<float> clipnorm, clipvalue, global_clipnorm;
  nn::ClippingOptions options() const {
    return {.clipnorm = clipnorm, .clipvalue = clipvalue, .global_clipnorm = global_clipnorm};
  }
};

nn::Api api_of(const std::string& name) {
  if (name == "legacy") return nn::Api::kLegacy;
  if (name == "keras2") return nn::Api::kKeras2;
  throw InvalidArgumentError(str("the api is \"legacy\" or \"keras2\", not \"", name, "\""));
}

const nn::OptimizerKind& kind_of(const std::string& name) {
  for (const nn::OptimizerKind& each : nn::optimizer_kinds())
    if (each.name == name) return each;
  nn::make_optimizer(name);  // names the nearest
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\""));
}

std::map<std::string, double> arguments_of(const nn::OptimizerKind& kind, const nb::kwargs& given) {
  std::map<std::string, double> all;
  for (auto [name, value] : given) {
    const auto text = nb::cast<std::string>(name);
    if (!kind.takes(text)) {
      std::vector<std::string> names = kind.numbers;
      names.insert(names.end(), kind.flags.begin(), kind.flags.end());
      const std::string near = nearest_name(text, names);
      throw nb::type_error(str("the optimizer \"", kind.name, "\" takes no \"", text, "\"",
                               near.empty() ? "" : "; did you mean \"" + near + "\"?")
                               .c_str());
    }
    double number = 0;
    if (!nb::try_cast(value, number))
      type_error(str("\"", text, "\" of the optimizer \"", kind.name, "\" is a number, not ",
                     described(value)));
    all[text] = number;
  }
  return all;
}

void make_optimizer(OptimizerObject* self, const std::string& kind, LearningRateLike learning_rate,
                    std::optional<float> clipnorm, std::optional<float> clipvalue,
                    std::optional<float> global_clipnorm, const std::string& api,
                    const std::string& name, nb::kwargs arguments) {
  Kept kept;
  const nn::OptimizerKind& of = kind_of(kind);
  nn::OptimizerSettings settings;
  if (!learning_rate.object.is_none()) settings.learning_rate = learning_rate.in(kept);
  settings.clipping = Clipping{clipnorm, clipvalue, global_clipnorm}.options();
  settings.api = api_of(api);
  settings.name = name;
  settings.arguments = arguments_of(of, arguments);
  new (self) OptimizerObject(of.make(settings), std::move(kept));
}

// ---- an update rule that is written in Python ----

struct RuleArguments {
  RuleInput in;
  std::vector<std::string> names;
};

RuleOutput output_of(nb::handle returned, const std::vector<std::string>& names,
                     const std::string& rule) {
  const bool pair = nb::isinstance<nb::tuple>(returned) && nb::len(returned) == 2;
  if (!pair) return {.value = array_of(returned)};
  RuleOutput out{.value = array_of(nb::object(returned[0]))};
  const nb::object slots = returned[1];
  if (!nb::isinstance<nb::dict>(slots))
    type_error(str("the rule \"", rule,
                   "\" returns the new value, or the new value and a dict of its slots, not ",
                   described(slots)));
  for (const std::string& name : names) {
    const nb::object value = slots.attr("get")(name, nb::none());
    if (value.is_none())
      throw InvalidArgumentError(
          str("the rule \"", rule, "\" returned no new value of its slot \"", name, "\""));
    out.slots.push_back(array_of(value));
  }
  if (nb::len(slots) != names.size())
    throw InvalidArgumentError(str("the rule \"", rule, "\" returned ", nb::len(slots),
                                   " slots, and was given ", names.size()));
  return out;
}

void make_custom(OptimizerObject* self, nb::handle function,
                 const std::map<std::string, float>& slots, LearningRateLike learning_rate,
                 std::optional<float> clipnorm, std::optional<float> clipvalue,
                 std::optional<float> global_clipnorm, const std::string& name) {
  Kept kept;
  require_function(function, "a rule is a function of the UpdateRuleInput");
  const nb::object own = nb::getattr(function, "__name__", nb::str("custom"));
  const std::string title = !name.empty()                              ? name
                            : nb::cast<std::string>(own) == "<lambda>" ? "custom"
                                                                       : nb::cast<std::string>(own);
  std::vector<RuleSlot> all;
  std::vector<std::string> names;
  for (const auto& [each, value] : slots) {
    all.push_back({each, value});
    names.push_back(each);
  }
  UpdateRule rule = custom_rule(title, all, [&](const RuleInput& in) {
    const Tracing tracing;
    return output_of(nb::borrow(function)(RuleArguments{in, names}), names, title);
  });
  auto optimizer = std::make_shared<nn::CustomOptimizer>(nn::CustomOptimizerOptions{
      .rule = std::move(rule),
      .learning_rate = learning_rate.in(kept),
      .clipping = Clipping{clipnorm, clipvalue, global_clipnorm}.options(),
      .name = name});
  new (self) OptimizerObject(std::move(optimizer), std::move(kept));
}

struct CustomObject : OptimizerObject {
  using OptimizerObject::OptimizerObject;
};

void bind_custom(nb::module_& m) {
  nb::class_<RuleArguments>(
      m, "UpdateRuleInput",
      "What an update rule in Python is given.\n\n>>> descent = cairn.CustomOptimizer(lambda rule: "
      "rule.value - rule.learning_rate * rule.gradient)")
      .def_prop_ro(
          "value", [](const RuleArguments& self) { return self.in.value; },
          "Elements of the variable, float32 [n].")
      .def_prop_ro(
          "gradient", [](const RuleArguments& self) { return self.in.gradient; },
          "Their gradients.")
      .def_prop_ro(
          "learning_rate", [](const RuleArguments& self) { return self.in.learning_rate; },
          "The rate, a scalar.")
      .def_prop_ro(
          "t", [](const RuleArguments& self) { return self.in.t; },
          "How often the variable has been updated, this time included.")
      .def(
          "__getitem__",
          [](const RuleArguments& self, const std::string& slot) {
            for (std::size_t i = 0; i < self.names.size(); ++i)
              if (self.names[i] == slot) return self.in.slots[i];
            throw nb::key_error(slot.c_str());
          },
          "slot"_a, "The numbers of a slot beside those elements.");
  nb::class_<CustomObject, OptimizerObject>(m, "CustomOptimizer",
                                            nb::type_slots(collected<OptimizerObject>()),
                                            R"(An update rule that is written in Python.

It is recorded once, and applied where the variable's rows lie, as Adam is.

>>> def momentum(rule):
...     velocity = 0.9 * rule["velocity"] - rule.learning_rate * rule.gradient
...     return rule.value + velocity, {"velocity": velocity}
>>> optimizer = cairn.CustomOptimizer(momentum, slots={"velocity": 0.0}, learning_rate=0.1)
>>> v = cairn.Variable([1.0], name="v")
>>> optimizer.minimize(cairn.sum(v * 2.0))
>>> v.numpy().round(4)
array([0.8], dtype=float32))")
      .def(
          "__init__",
          [](CustomObject* self, nb::handle function, const std::map<std::string, float>& slots,
             LearningRateLike learning_rate, std::optional<float> clipnorm,
             std::optional<float> clipvalue, std::optional<float> global_clipnorm,
             const std::string& name) {
            make_custom(self, function, slots, learning_rate, clipnorm, clipvalue, global_clipnorm,
                        name);
          },
          "function"_a, "slots"_a = std::map<std::string, float>{}, "learning_rate"_a = 0.001,
          nb::kw_only(), "clipnorm"_a = nb::none(), "clipvalue"_a = nb::none(),
          "global_clipnorm"_a = nb::none(), "name"_a = "",
          nb::sig("def __init__(self, function: collections.abc.Callable[[UpdateRuleInput], "
                  "typing.Any], slots: collections.abc.Mapping[str, float] = {}, learning_rate: "
                  "cairn.typing.LearningRateLike = 0.001, *, clipnorm: float | None = None, "
                  "clipvalue: float | None = None, global_clipnorm: float | None = None, name: str "
                  "= '') -> None"));
}

// ---- gradients by variable ----

std::vector<Variable> variables_of(nb::handle list) {
  std::vector<Variable> all;
  if (list.is_none()) return all;
  if (nb::isinstance<OwnedVariable>(list) || !nb::hasattr(list, "__iter__"))
    type_error(str("a list of Variables is wanted, not ", described(list)));
  for (nb::handle each : list) {
    if (!nb::isinstance<OwnedVariable>(each))
      type_error(str("a list of Variables is wanted, and it has ", described(each)));
    all.push_back(nb::cast<const OwnedVariable&>(each).get());
  }
  return all;
}

// VariableGradients, or Keras's pairs of a gradient and its variable.
std::vector<VariableGradient> gradients_of(nb::handle list) {
  std::vector<VariableGradient> all;
  const auto refuse = [](nb::handle given) {
    type_error(str("gradients are a list of VariableGradients, or of pairs (gradient, variable), ",
                   "not ", described(given)));
  };
  if (!nb::hasattr(list, "__iter__")) refuse(list);
  for (nb::handle each : list) {
    if (nb::isinstance<VariableGradient>(each)) {
      all.push_back(nb::cast<const VariableGradient&>(each));
      continue;
    }
    if (!nb::isinstance<nb::tuple>(each) || nb::len(each) != 2 ||
        !nb::isinstance<OwnedVariable>(nb::object(each[1])))
      refuse(each);
    const nb::object gradient = each[0], variable = each[1];
    if (gradient.is_none()) continue;
    all.push_back({.variable = nb::cast<const OwnedVariable&>(variable).get(),
                   .dense = array_of(gradient),
                   .sparse = {}});
  }
  return all;
}

std::optional<Array> given(const Array& array) {
  if (!array.defined()) return std::nullopt;
  return array;
}

void bind_gradients(nb::module_& m) {
  nb::class_<VariableGradient>(
      m, "VariableGradient",
      "A variable and its gradient.\n\n>>> v = cairn.Variable([3.0])\n>>> [(gradient, variable)] = "
      "cairn.variable_gradients(cairn.sum(v))\n>>> gradient.numpy()\narray([1.], dtype=float32)")
      .def_prop_ro(
          "variable", [](const VariableGradient& of) { return owned(of.variable); },
          "What it is the gradient of.")
      .def_prop_rw(
          "dense", [](const VariableGradient& of) { return given(of.dense); },
          [](VariableGradient& of, ArrayLike dense) { of.dense = dense; },
          "Of the whole variable; None: it is sparse.")
      .def_prop_ro(
          "ids", [](const VariableGradient& of) { return given(of.sparse.ids); },
          "The numbers of the rows of a sparse gradient; None: it is dense.")
      .def_prop_rw(
          "rows", [](const VariableGradient& of) { return given(of.sparse.rows); },
          [](VariableGradient& of, ArrayLike rows) { of.sparse.rows = rows; },
          "The rows of a sparse gradient; None: it is dense.")
      .def_prop_ro("is_sparse", &VariableGradient::is_sparse, "Whether it has rows alone.")
      .def(
          "__iter__",
          [](const VariableGradient& of) {
            const Array& value = of.is_sparse() ? of.sparse.rows : of.dense;
            return nb::make_tuple(nb::cast(value), nb::cast(owned(of.variable))).attr("__iter__")();
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[typing.Any]"));
  m.def(
      "variable_gradients",
      [](ArrayLike loss, nb::handle variables) {
        return variable_gradients(loss, variables_of(variables));
      },
      "loss"_a, "variables"_a = nb::none(),
      nb::sig("def variable_gradients(loss: cairn.typing.ArrayLike, variables: "
              "collections.abc.Sequence[Variable] | None = None) -> list[VariableGradient]"),
      "The gradient of a scalar by each trainable variable that it depends on.\n\n>>> v = "
      "cairn.Variable([3.0])\n>>> gradients = cairn.variable_gradients(cairn.sum(v * v))\n>>> "
      "gradients[0].dense.numpy()\narray([6.], dtype=float32)");
}

void bind_clip(nb::module_& nn) {
  nn.def(
      "clip",
      [](nb::handle gradients, std::optional<float> clipnorm, std::optional<float> clipvalue,
         std::optional<float> global_clipnorm) {
        const auto options = Clipping{clipnorm, clipvalue, global_clipnorm}.options();
        nn::verify(options);
        return nn::clip(gradients_of(gradients), options);
      },
      "gradients"_a, nb::kw_only(), "clipnorm"_a = nb::none(), "clipvalue"_a = nb::none(),
      "global_clipnorm"_a = nb::none(),
      nb::sig("def clip(gradients: collections.abc.Iterable[cairn._cairn.VariableGradient], *, "
              "clipnorm: float | None = None, clipvalue: float | None = None, global_clipnorm: "
              "float | None = None) -> list[cairn._cairn.VariableGradient]"),
      "Gradients by variable, clipped as an optimizer does it.\n\n>>> v = cairn.Variable([3.0, "
      "4.0])\n>>> gradients = cairn.variable_gradients(cairn.sum(v * v))\n>>> "
      "cairn.nn.clip(gradients, clipnorm=1.0)[0].dense.numpy()\narray([0.6, 0.8], dtype=float32)");
}

// ---- the optimizer ----

void bind_optimizer(nb::module_& m) {
  nb::class_<OptimizerObject>(
      m, "Optimizer", nb::type_slots(collected<OptimizerObject>()),
      R"(How gradients change variables: by its kind, or from cairn.optimizers.

>>> v = cairn.Variable([1.0], name="v")
>>> cairn.Optimizer("sgd", learning_rate=0.5).minimize(cairn.sum(v * v))
>>> v.numpy()
array([0.], dtype=float32))")
      .def("__init__", &make_optimizer, "kind"_a, "learning_rate"_a = nb::none(), nb::kw_only(),
           "clipnorm"_a = nb::none(), "clipvalue"_a = nb::none(), "global_clipnorm"_a = nb::none(),
           "api"_a = "legacy", "name"_a = "", "arguments"_a,
           nb::sig("def __init__(self, kind: str, learning_rate: cairn.typing.LearningRateLike | "
                   "None = None, *, clipnorm: float | None = None, clipvalue: float | None = None, "
                   "global_clipnorm: float | None = None, api: str = 'legacy', name: str = '', "
                   "**arguments: float) -> None"))
      .def(
          "minimize",
          [](OptimizerObject& self, ArrayLike loss, nb::handle var_list) {
            const Array of = loss;
            const auto variables = variables_of(var_list);
            self.use();
            recorded_or_run([&] { self.get().minimize(of, variables); });
          },
          "loss"_a, "var_list"_a = nb::none(),
          nb::sig("def minimize(self, loss: cairn.typing.ArrayLike, var_list: "
                  "collections.abc.Sequence[Variable] | None = None) -> None"),
          "Changes every trainable variable that the loss depends on, or those given.")
      .def(
          "apply_gradients",
          [](OptimizerObject& self, nb::handle gradients) {
            auto all = gradients_of(gradients);
            self.use();
            recorded_or_run([&] { self.get().apply_gradients(std::move(all)); });
          },
          "gradients"_a,
          nb::sig("def apply_gradients(self, gradients: "
                  "collections.abc.Iterable[VariableGradient | tuple[cairn.typing.ArrayLike | "
                  "None, Variable]]) -> None"),
          "Changes variables by gradients that were made or changed by hand.")
      .def_prop_ro(
          "iterations",
          [](const OptimizerObject& self) {
            return owned(recorded_or_run([&] { return self.get().iterations(); }));
          },
          "How often it has been applied.")
      .def_prop_rw(
          "learning_rate",
          [](const OptimizerObject& self) {
            return recorded_or_run([&] { return self.get().learning_rate(); });
          },
          [](OptimizerObject& self, float rate) {
            if (!self.get().rate_is_adjustable()) {
              if (self.used())
                throw FailedPreconditionError(
                    "steps that were recorded already keep the learning rate as a constant: call "
                    "make_rate_adjustable() before the first of them");
              self.get().make_rate_adjustable();
            }
            recorded_or_run([&] { self.get().set_learning_rate(rate); });
          },
          "The rate for the next step.")
      .def(
          "make_rate_adjustable", [](OptimizerObject& self) { self.get().make_rate_adjustable(); },
          "From now on the rate is a variable, which can be set.")
      .def_prop_ro(
          "rule", [](const OptimizerObject& self) { return self.get().rule(); },
          "How it changes a variable's rows.");
}

}  // namespace

void bind_optimizers(nb::module_& m) {
  nb::module_ nn = nb::borrow<nb::module_>(m.attr("nn"));
  bind_schedules(nn);
  bind_gradients(m);
  bind_clip(nn);
  bind_optimizer(m);
  bind_custom(m);
  nn.def(
      "optimizer_names",
      [] {
        std::vector<std::string> names;
        for (const nn::OptimizerKind& each : nn::optimizer_kinds()) names.push_back(each.name);
        return names;
      },
      "The names of optimizers.\n\n>>> \"adam\" in cairn.nn.optimizer_names()\nTrue");
}

}  // namespace cairn::python
