// cairn.nn: the base of its layers, and those that are bound in other files.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fields.h"
#include "layer_object.h"
#include "nn/nn.h"
#include "refusing.h"

namespace cairn::python {
namespace {

// "MyLayer" -> "my_layer".
std::string snake_case(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !text.empty() && text.back() != '_') text += '_';
    text += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

nn::LayerName name_of_callable(nb::handle callable) {
  const nb::object known = nb::getattr(callable, "_layer_name", nb::none());
  if (nb::isinstance<nn::LayerName>(known)) return nb::cast<const nn::LayerName&>(known);
  nb::object name = nb::getattr(callable, "__name__", nb::none());
  if (!nb::isinstance<nb::str>(name)) name = nb::handle(callable.type()).attr("__name__");
  const auto text = nb::cast<std::string>(name);
  return {"", text == "<lambda>" ? "lambda" : snake_case(text)};
}

// A layer that is written in Python: anything that can be called with an array.
class CalledLayer {
 public:
  CalledLayer(SharedReference callable, nn::LayerName name)
      : callable_(std::move(callable)), name_(std::move(name)) {}
  Array operator()(const Array& x) const {
    const Acquired here;
    return array_of(call_recorded(callable_, x));
  }
  const nn::LayerName& layer_name() const { return name_; }
  std::vector<Variable> variables() const {
    const Acquired here;
    std::vector<Variable> all;
    const nb::object own = nb::getattr(callable_->get(), "variables", nb::none());
    if (nb::isinstance<nb::list>(own) || nb::isinstance<nb::tuple>(own))
      for (nb::handle each : own)
        if (nb::isinstance<OwnedVariable>(each))
          all.push_back(nb::cast<const OwnedVariable&>(each).get());
    return all;
  }

 private:
  SharedReference callable_;
  nn::LayerName name_;
};

}  // namespace

void refuse_as_layer(const std::string& name) {
  throw nb::type_error(str("the layer \"", name,
                           "\" does not take one array and give one: call it in a function, which "
                           "can stand in a list of layers")
                           .c_str());
}

nb::list owned_list(const std::vector<Variable>& variables) {
  nb::list all;
  for (const Variable& each : variables) all.append(nb::cast(owned(each)));
  return all;
}

nn::Layer layer_of(nb::handle object, Kept& kept) {
  if (nb::isinstance<LayerObject>(object)) {
    kept.keep(object);
    return nb::cast<const LayerObject&>(object).erased();
  }
  if (nb::isinstance<nb::str>(object)) {
    const auto name = nb::cast<std::string>(object);
    return {name, nn::activation(name)};
  }
  require_object(object, "a layer");
  require_function(object,
                   "a layer is one of cairn.nn's, the name of an activation, or a function of an "
                   "array");
  return nn::Layer(CalledLayer(kept.keep(object), name_of_callable(object)));
}

void bind_layers(nb::module_& m) {
  nb::module_ nn = m.def_submodule("nn", "Layers, losses and metrics.");
  bind_layer_options(nn);
  FieldsOf<nn::LayerSummary>(nn, "LayerSummary", "How large a layer is.")
      .add("name", &nn::LayerSummary::name, "\"dense_1\".")
      .add("kind", &nn::LayerSummary::kind, "\"dense\".")
      .add("parameters", &nn::LayerSummary::parameters, "Numbers of its variables.")
      .add("trainable_parameters", &nn::LayerSummary::trainable_parameters,
           "Those that are trained.")
      .report()
      .def_prop_ro(
          "output",
          [](const nn::LayerSummary& of) -> std::optional<std::string> {
            if (!of.output) return std::nullopt;
            return of.output->to_string();
          },
          "The type of its last value; None: it was not called.");
  nb::class_<LayerObject>(nn, "Layer",
                          "A layer: variables are made when it is first called.\n\n>>> "
                          "isinstance(cairn.nn.Dense(1), cairn.nn.Layer)\nTrue")
      .def_prop_ro("name", &LayerObject::name, "As it was given, or as its model calls it.")
      .def(
          "layer_summary", [](const LayerObject& self) { return self.erased().summary(); },
          "Its size in the scope that is open.")
      .def_prop_ro(
          "variables", [](const LayerObject& self) { return owned_list(self.variables()); },
          nb::sig("def variables(self) -> list[cairn._cairn.Variable]"),
          "Its variables in the scope that is open; it was called there before.")
      .def("__repr__", [](nb::handle self) {
        const auto name = nb::cast<const LayerObject&>(self).name();
        const auto kind = nb::cast<std::string>(nb::handle(self.type()).attr("__name__"));
        return str("<cairn.nn.", kind, name.empty() ? "" : " \"" + name + "\"", ">");
      });
  bind_dense_layers(nn);
  bind_image_layers(nn);
  bind_embedding_layers(nn);
  bind_sequence_layers(nn);
  bind_combining_layers(nn);
  bind_layer_tools(nn);
}

}  // namespace cairn::python
