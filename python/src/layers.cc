// cairn.nn: layers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "nn/nn.h"
#include "owner.h"
#include "values.h"

namespace cairn::python {
namespace {

nb::list owned_list(const std::vector<Variable>& variables) {
  nb::list all;
  for (const Variable& each : variables) all.append(nb::cast(owned(each)));
  return all;
}

// Every layer has these.
template <typename Layer>
void bind_common(nb::class_<Layer>& layer) {
  layer
      .def(
          "__call__",
          [](const Layer& self, ArrayLike x) {
            const Array in = x;
            return self(in);
          },
          "x"_a)
      .def_prop_ro("name", [](const Layer& self) { return self.layer_name().get(); })
      .def_prop_ro(
          "variables", [](const Layer& self) { return owned_list(self.variables()); },
          nb::sig("def variables(self) -> list[Variable]"),
          "Its variables in the scope that is open; it was called there before.");
}

nn::Activation activation_of(const std::optional<std::string>& name) {
  return name ? nn::Activation(*name) : nn::Activation();
}

}  // namespace

void bind_layers(nb::module_& m) {
  nb::module_ nn = m.def_submodule("nn", "Layers.");
  nb::class_<nn::Dense> dense(nn, "Dense", R"(activation(x @ kernel + bias).

>>> layer = cairn.nn.Dense(3)
>>> layer(np.ones((2, 4), "float32")).shape
(2, 3))");
  dense.def(
      "__init__",
      [](nn::Dense* self, std::int64_t units, std::optional<std::string> activation, bool use_bias,
         const std::string& name, std::uint64_t seed) {
        new (self) nn::Dense({.units = units,
                              .activation = activation_of(activation),
                              .use_bias = use_bias,
                              .name = name,
                              .seed = seed});
      },
      "units"_a, "activation"_a = nb::none(), "use_bias"_a = true, nb::kw_only(), "name"_a = "",
      "seed"_a = 0);
  bind_common(dense);
  nb::class_<nn::Mlp> mlp(nn, "Mlp", "Dense layers one after another.");
  mlp.def(
      "__init__",
      [](nn::Mlp* self, const std::vector<std::int64_t>& units,
         std::optional<std::string> activation, bool last_linear, const std::string& name,
         std::uint64_t seed) {
        new (self) nn::Mlp({.units = units,
                            .activation = activation_of(activation),
                            .last_linear = last_linear,
                            .name = name,
                            .seed = seed});
      },
      "units"_a, "activation"_a = nb::none(), "last_linear"_a = true, nb::kw_only(), "name"_a = "",
      "seed"_a = 0);
  bind_common(mlp);
  nb::class_<nn::Embedding> embedding(nn, "Embedding", "A table of vectors, looked up by id.");
  embedding
      .def(
          "__init__",
          [](nn::Embedding* self, std::int64_t rows, std::int64_t dim,
             std::optional<std::string> combiner, const std::string& name, std::uint64_t seed,
             bool hashed) {
            nn::EmbeddingOptions options{.name = name, .rows = rows, .dim = dim};
            if (combiner) options.combiner = combiner_of(*combiner);
            options.seed = seed;
            options.hashed = hashed;
            new (self) nn::Embedding(std::move(options));
          },
          "rows"_a, "dim"_a, "combiner"_a = nb::none(), nb::kw_only(), "name"_a = "", "seed"_a = 0,
          "hashed"_a = false)
      .def(
          "__call__",
          [](const nn::Embedding& self, ArrayLike values, ArrayLike row_splits) {
            const Array ids = values, splits = row_splits;
            return self(ids, splits);
          },
          "values"_a, "row_splits"_a);
  bind_common(embedding);
}

}  // namespace cairn::python
