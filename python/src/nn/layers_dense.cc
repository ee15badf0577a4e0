// cairn.nn: dense layers, lists of layers, normalization and dropout.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"
#include "refusing.h"

namespace cairn::python {
namespace {

void bind_dense(nb::module_& m) {
  auto dense = layer_class<nn::Dense>(m, "Dense", R"(activation(x @ kernel + bias).

>>> layer = cairn.nn.Dense(3, activation="relu")
>>> layer(np.ones((2, 4), "float32")).shape
(2, 3))");
  dense.def(
      "__init__",
      [](LayerOf<nn::Dense>* self, std::int64_t units, ActivationLike activation, bool use_bias,
         InitializerLike kernel_initializer, InitializerLike bias_initializer,
         RegularizerLike kernel_regularizer, RegularizerLike bias_regularizer,
         RegularizerLike activity_regularizer, const std::string& name, std::uint64_t seed) {
        Kept kept;
        nn::DenseOptions options{.units = units,
                                 .activation = activation.in(kept),
                                 .use_bias = use_bias,
                                 .kernel_initializer = kernel_initializer.kernel(kept),
                                 .bias_initializer = bias_initializer.value(units, units, seed),
                                 .name = name,
                                 .seed = seed,
                                 .kernel_regularizer = kernel_regularizer.in(kept),
                                 .bias_regularizer = bias_regularizer.in(kept),
                                 .activity_regularizer = activity_regularizer.in(kept)};
        make_layer(self, nn::Dense(std::move(options)), std::move(kept));
      },
      "units"_a, "activation"_a = nb::none(), "use_bias"_a = true, nb::kw_only(),
      "kernel_initializer"_a = nb::none(), "bias_initializer"_a = nb::none(),
      "kernel_regularizer"_a = nb::none(), "bias_regularizer"_a = nb::none(),
      "activity_regularizer"_a = nb::none(), "name"_a = "", "seed"_a = 0);
  variable_property<nn::Dense>(dense, "kernel", &nn::Dense::kernel, "[inputs, units].");
  variable_property<nn::Dense>(dense, "bias", &nn::Dense::bias, "[units].");
}

void bind_mlp(nb::module_& m) {
  auto mlp = layer_class<nn::Mlp>(m, "Mlp", R"(Dense layers one after another.

>>> cairn.nn.Mlp([16, 1])(np.ones((2, 4), "float32")).shape
(2, 1))");
  mlp.def(
      "__init__",
      [](LayerOf<nn::Mlp>* self, std::vector<std::int64_t> units, ActivationLike activation,
         bool last_linear, const std::string& name, std::uint64_t seed) {
        Kept kept;
        nn::MlpOptions options{.units = std::move(units),
                               .activation = activation.in(kept),
                               .last_linear = last_linear,
                               .name = name,
                               .seed = seed};
        make_layer(self, nn::Mlp(std::move(options)), std::move(kept));
      },
      "units"_a, "activation"_a = nb::none(), "last_linear"_a = true, nb::kw_only(), "name"_a = "",
      "seed"_a = 0);
  mlp.def_prop_ro(
      "layers", [](const LayerOf<nn::Mlp>& self) { return parts_list(self.get().layers()); },
      nb::sig("def layers(self) -> list[Dense]"), "From the first to the last.");
}

// ---- lists of layers ----

nb::list summary_of(const nn::Sequential& network) {
  nb::list lines;
  for (const nn::LayerSummary& each : network.summary()) {
    nb::dict line;
    line["name"] = each.name;
    line["kind"] = each.kind;
    line["output"] = each.output ? tuple_of(each.output->shape) : nb::none();
    line["parameters"] = each.parameters;
    line["trainable_parameters"] = each.trainable_parameters;
    lines.append(line);
  }
  return lines;
}

// Whether an object is this list, or has it among its layers.
bool holds(nb::handle object, const LayerOf<nn::Sequential>& list) {
  if (!nb::isinstance<LayerObject>(object)) return false;
  const auto& layer = nb::cast<const LayerObject&>(object);
  if (&layer == &list) return true;
  bool found = false;
  layer.each_kept([&](nb::handle part) { found = found || holds(part, list); });
  return found;
}

void bind_sequential(nb::module_& m) {
  using List = LayerOf<nn::Sequential>;
  auto sequential = layer_class<nn::Sequential>(m, "Sequential", R"(Layers one after another.

>>> network = cairn.nn.Sequential([cairn.nn.Dense(8), "relu", lambda x: x * 2.0, cairn.nn.Dense(1)])
>>> network(np.ones((2, 4), "float32")).shape
(2, 1)
>>> [layer["name"] for layer in network.summary()]
['dense', 'relu', 'lambda', 'dense_1'])");
  sequential
      .def(
          "__init__",
          [](List* self, nb::handle layers, const std::string& name) {
            Kept kept;
            std::vector<nn::Layer> all;
            if (!layers.is_none() && !nb::hasattr(layers, "__iter__"))
              type_error(str("Sequential() takes a list of layers, not ", described(layers)));
            if (!layers.is_none())
              for (nb::handle each : layers) all.push_back(layer_of(each, kept));
            make_layer(self, nn::Sequential(std::move(all), name), std::move(kept));
          },
          "layers"_a = nb::none(), "name"_a = "",
          nb::sig("def __init__(self, layers: collections.abc.Sequence[cairn.typing.LayerLike] | "
                  "None = None, name: str = '') -> None"))
      .def(
          "add",
          [](List& self, LayerLike layer) {
            if (holds(layer.object, self))
              throw InvalidArgumentError("a Sequential cannot be a layer of itself");
            self.get().add(layer_of(layer.object, self.kept()));
          },
          "layer"_a, "Appends a layer.")
      .def("__len__", [](const List& self) { return self.get().layers().size(); })
      .def(
          "summary", [](const List& self) { return summary_of(self.get()); },
          nb::sig("def summary(self) -> list[dict[str, typing.Any]]"),
          "A dict for each layer: its name, its kind, the shape of its output, its parameters.");
}

// ---- normalization, dropout ----

void bind_normalization(nb::module_& m) {
  auto layer = layer_class<nn::LayerNormalization>(m, "LayerNormalization",
                                                   R"(Each example to mean 0 and variance 1.

>>> cairn.nn.LayerNormalization()([[1.0, 3.0]]).numpy().round(2)
array([[-1.,  1.]], dtype=float32))");
  layer.def(
      "__init__",
      [](LayerOf<nn::LayerNormalization>* self, float epsilon, bool center, bool scale,
         const std::string& name) {
        make_layer(self,
                   nn::LayerNormalization(
                       {.epsilon = epsilon, .center = center, .scale = scale, .name = name}),
                   {});
      },
      nb::kw_only(), "epsilon"_a = 1e-3, "center"_a = true, "scale"_a = true, "name"_a = "");
  auto batch = layer_class<nn::BatchNormalization>(
      m, "BatchNormalization",
      "Each channel to mean 0 and variance 1: of the batch in training, else by moving "
      "averages.\n\n"
      ">>> cairn.nn.BatchNormalization()(np.ones((4, 2), \"float32\")).shape\n(4, 2)");
  batch.def(
      "__init__",
      [](LayerOf<nn::BatchNormalization>* self, float momentum, float epsilon, bool center,
         bool scale, RegularizerLike beta_regularizer, RegularizerLike gamma_regularizer,
         const std::string& name) {
        Kept kept;
        nn::BatchNormalizationOptions options{.momentum = momentum,
                                              .epsilon = epsilon,
                                              .center = center,
                                              .scale = scale,
                                              .beta_regularizer = beta_regularizer.in(kept),
                                              .gamma_regularizer = gamma_regularizer.in(kept),
                                              .name = name};
        make_layer(self, nn::BatchNormalization(std::move(options)), std::move(kept));
      },
      nb::kw_only(), "momentum"_a = 0.99, "epsilon"_a = 1e-3, "center"_a = true, "scale"_a = true,
      "beta_regularizer"_a = nb::none(), "gamma_regularizer"_a = nb::none(), "name"_a = "");
  variable_property<nn::BatchNormalization>(batch, "moving_mean",
                                            &nn::BatchNormalization::moving_mean, "[channels].");
  variable_property<nn::BatchNormalization>(
      batch, "moving_variance", &nn::BatchNormalization::moving_variance, "[channels].");
}

void bind_shaping(nb::module_& m) {
  layer_class<nn::Flatten>(m, "Flatten", R"(All axes behind the first one as one.

>>> cairn.nn.Flatten()(np.ones((2, 3, 4), "float32")).shape
(2, 12))")
      .def(
          "__init__",
          [](LayerOf<nn::Flatten>* self, const std::string& name) {
            make_layer(self, nn::Flatten(name), {});
          },
          "name"_a = "");
  layer_class<nn::Dropout>(
      m, "Dropout",
      "In training each element is 0 with probability `rate`, else divided by 1 - "
      "rate.\n\n>>> cairn.nn.Dropout(0.5)([1.0]).numpy()\narray([1.], dtype=float32)")
      .def(
          "__init__",
          [](LayerOf<nn::Dropout>* self, float rate, std::uint64_t seed, const std::string& name) {
            make_layer(self, nn::Dropout(rate, seed, name), {});
          },
          "rate"_a, "seed"_a = 0, "name"_a = "");
}

}  // namespace

void bind_dense_layers(nb::module_& m) {
  bind_dense(m);
  bind_mlp(m);
  bind_sequential(m);
  bind_normalization(m);
  bind_shaping(m);
}

}  // namespace cairn::python
