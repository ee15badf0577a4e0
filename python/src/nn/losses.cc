// cairn.Loss, and what belongs to losses.
#include "losses.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"
#include "refusing.h"

namespace cairn::python {
namespace {

nn::LossInput input_of(const std::string& name) {
  if (name == "numbers") return nn::LossInput::kNumbers;
  if (name == "probabilities") return nn::LossInput::kProbabilities;
  if (name == "logits") return nn::LossInput::kLogits;
  if (name == "class_logits") return nn::LossInput::kClassLogits;
  throw InvalidArgumentError(
      str("a loss takes \"numbers\", \"probabilities\", \"logits\" or \"class_logits\", not \"",
          name, "\""));
}

nn::Loss called_loss(nb::handle function, Kept& kept, const std::string& name,
                     nn::LossInput input) {
  return nn::Loss(
      name,
      [function = kept.keep(function)](const Array& prediction, const Array& label) {
        const Acquired here;
        return array_of(call_recorded(function, prediction, label));
      },
      input);
}

void make_loss(LossObject* self, nb::handle loss, bool from_logits, float label_smoothing,
               float delta, const std::string& name, const std::string& input) {
  Kept kept;
  if (nb::isinstance<nb::str>(loss)) {
    new (self) LossObject(
        nn::Loss(nb::cast<std::string>(loss), nn::LossOptions{.from_logits = from_logits,
                                                              .label_smoothing = label_smoothing,
                                                              .delta = delta}),
        {});
    return;
  }
  require_object(loss, "a loss");
  require_function(loss, "a loss is a name or a function of prediction and label");
  nn::Loss made = called_loss(loss, kept, name.empty() ? name_of_function(loss, "loss") : name,
                              input_of(input));
  new (self) LossObject(std::move(made), std::move(kept));
}

nn::Reduction reduction_of(const std::string& name) {
  if (name == "sum_over_batch_size" || name == "mean") return nn::Reduction::kSumOverBatchSize;
  if (name == "sum") return nn::Reduction::kSum;
  if (name == "none") return nn::Reduction::kNone;
  throw InvalidArgumentError(
      str("a reduction is \"sum_over_batch_size\", \"sum\" or \"none\", not \"", name, "\""));
}

}  // namespace

std::string name_of_function(nb::handle function, const char* otherwise) {
  const nb::object name = nb::getattr(function, "__name__", nb::none());
  if (!nb::isinstance<nb::str>(name)) return otherwise;
  const auto text = nb::cast<std::string>(name);
  return text == "<lambda>" ? otherwise : text;
}

nn::Loss loss_of(nb::handle loss, Kept& kept) {
  if (loss.is_none()) return {};
  if (nb::isinstance<LossObject>(loss)) {
    kept.keep(loss);
    return nb::cast<const LossObject&>(loss).get();
  }
  if (nb::isinstance<nb::str>(loss)) return nn::Loss(nb::cast<std::string>(loss));
  require_object(loss, "a loss");
  require_function(loss, "a loss is a name, a cairn.Loss, or a function of prediction and label");
  return called_loss(loss, kept, name_of_function(loss, "loss"), nn::LossInput::kNumbers);
}

void bind_losses(nb::module_& m) {
  nb::class_<LossObject>(m, "Loss", nb::type_slots(collected<LossObject>()),
                         R"(A loss by its name in Keras, or by a function of prediction and label.

>>> loss = cairn.Loss("binary_crossentropy", from_logits=True)
>>> loss([[0.0]], [1.0]).numpy().round(4)
array([0.6931], dtype=float32)
>>> cairn.Loss(lambda prediction, label: cairn.square(prediction - label), name="own").name
'own')")
      .def(
          "__init__", &make_loss, "loss"_a, nb::kw_only(), "from_logits"_a = false,
          "label_smoothing"_a = 0.0, "delta"_a = 1.0, "name"_a = "", "input"_a = "numbers",
          nb::sig("def __init__(self, loss: str | collections.abc.Callable[[Array, Array], Array], "
                  "*, from_logits: bool = False, label_smoothing: float = 0.0, delta: float = 1.0, "
                  "name: str = '', input: str = 'numbers') -> None"))
      .def(
          "__call__",
          [](const LossObject& loss, ArrayLike prediction, ArrayLike label) {
            return loss.get()(prediction, label);
          },
          "prediction"_a, "label"_a, "One value for each example.")
      .def_prop_ro(
          "name", [](const LossObject& loss) { return loss.get().name(); },
          "The name that logs and errors have for it.")
      .def("__repr__",
           [](const LossObject& loss) { return str("<cairn.Loss \"", loss.get().name(), "\">"); });
  nb::module_ nn = nb::borrow<nb::module_>(m.attr("nn"));
  bind_loss_functions(nn);
  nn.def(
      "probabilities_of",
      [](const std::string& input, ArrayLike prediction) {
        return nn::probabilities_of(input_of(input), prediction);
      },
      "input"_a, "prediction"_a,
      "The probabilities that a loss's predictions mean.\n\n>>> "
      "cairn.nn.probabilities_of(\"logits\", [0.0]).numpy()\narray([0.5], dtype=float32)");
  nn.def("loss_names", &nn::loss_names,
         "The names of losses.\n\n>>> \"huber\" in cairn.nn.loss_names()\nTrue");
  nn.def(
      "reduce_loss",
      [](ArrayLike values, nb::handle weights, const std::string& reduction) {
        return nn::reduce_loss(values, weights.is_none() ? Array() : array_of(weights),
                               reduction_of(reduction));
      },
      "values"_a, "weights"_a = nb::none(), "reduction"_a = "sum_over_batch_size",
      nb::sig("def reduce_loss(values: cairn.typing.ArrayLike, weights: cairn.typing.ArrayLike | "
              "None = None, reduction: str = 'sum_over_batch_size') -> cairn._cairn.Array"),
      "One number of the values of all examples.\n\n>>> cairn.nn.reduce_loss([1.0, "
      "3.0]).item()\n2.0");
  nn.def(
      "class_weights",
      [](ArrayLike label, const std::map<std::int64_t, float>& weights) {
        return nn::class_weights(label, weights);
      },
      "label"_a, "weights"_a,
      "The weight of each example by its class.\n\n>>> cairn.nn.class_weights([0, 1], {1: "
      "5.0}).numpy()\narray([1., 5.], dtype=float32)");
}

}  // namespace cairn::python
