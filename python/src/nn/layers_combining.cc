// cairn.nn: how the features of an example interact, and models of several parts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/layers/click_model.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

template <typename L>
void bind_of_vectors(LayerClass<L>& layer) {
  layer.def(
      "__call__",
      [](const LayerOf<L>& self, ArrayList vectors) {
        return call_layer(self, std::vector<Array>(vectors));
      },
      "vectors"_a);
}

void bind_interactions(nb::module_& m) {
  nb::class_<LayerOf<nn::DotInteraction>, LayerObject> dots(
      m, "DotInteraction", nb::type_slots(collected<LayerObject>()),
      R"(The pairwise dot products of an example's vectors, as in DLRM.

>>> cairn.nn.DotInteraction()([np.ones((2, 4), "float32")] * 3).shape
(2, 7))");
  dots.def(
      "__init__",
      [](LayerOf<nn::DotInteraction>* self, bool keep_first) {
        make_layer(self, nn::DotInteraction({.keep_first = keep_first}), {});
      },
      nb::kw_only(), "keep_first"_a = true);
  bind_of_vectors<nn::DotInteraction>(dots);
  nb::class_<LayerOf<nn::FactorizationMachine>, LayerObject> machine(
      m, "FactorizationMachine", nb::type_slots(collected<LayerObject>()),
      R"(The sum of the pairwise dot products (Rendle, ICDM 2010).

>>> cairn.nn.FactorizationMachine()([np.ones((2, 4), "float32")] * 2).numpy()
array([[4.],
       [4.]], dtype=float32))");
  machine.def("__init__", [](LayerOf<nn::FactorizationMachine>* self) {
    make_layer(self, nn::FactorizationMachine(), {});
  });
  bind_of_vectors<nn::FactorizationMachine>(machine);
  m.def(
      "factorization_machine", [](ArrayList vectors) { return nn::factorization_machine(vectors); },
      "vectors"_a,
      "The same as a function.\n\n>>> cairn.nn.factorization_machine([[[1.0]], "
      "[[2.0]]]).numpy()\narray([[2.]], dtype=float32)");
}

void bind_crosses(nb::module_& m) {
  layer_class<nn::CrossNetwork>(m, "CrossNetwork", R"(The cross network of DCN-v2 (WWW 2021).

>>> cairn.nn.CrossNetwork(layers=2)(np.ones((2, 4), "float32")).shape
(2, 4))")
      .def(
          "__init__",
          [](LayerOf<nn::CrossNetwork>* self, int layers, const std::string& name,
             std::uint64_t seed) {
            make_layer(self, nn::CrossNetwork({.layers = layers, .name = name, .seed = seed}), {});
          },
          "layers"_a = 3, nb::kw_only(), "name"_a = "", "seed"_a = 0)
      .def_prop_ro(
          "layers",
          [](const LayerOf<nn::CrossNetwork>& self) { return parts_list(self.get().layers()); },
          nb::sig("def layers(self) -> list[Dense]"), "None before the first call.");
  nb::class_<LayerOf<nn::Cross>, LayerObject>(m, "Cross", nb::type_slots(collected<LayerObject>()),
                                              R"(One stage of a cross network.

>>> x = np.ones((2, 4), "float32")
>>> cairn.nn.Cross(projection_dim=2)(x, x).shape
(2, 4))")
      .def(
          "__init__",
          [](LayerOf<nn::Cross>* self, std::int64_t projection_dim, const std::string& name,
             std::uint64_t seed) {
            make_layer(self,
                       nn::Cross({.projection_dim = projection_dim, .name = name, .seed = seed}),
                       {});
          },
          "projection_dim"_a = 0, nb::kw_only(), "name"_a = "", "seed"_a = 0)
      .def(
          "__call__",
          [](const LayerOf<nn::Cross>& self, ArrayLike x0, nb::handle x) {
            const Array first = x0;
            return call_layer(self, first, x.is_none() ? first : array_of(x));
          },
          "x0"_a, "x"_a = nb::none(),
          nb::sig("def __call__(self, x0: cairn.typing.ArrayLike, x: cairn.typing.ArrayLike | None "
                  "= None) -> cairn._cairn.Array"));
}

void bind_mmoe(nb::module_& m) {
  nb::class_<LayerOf<nn::MMoE>, LayerObject>(m, "MMoE", nb::type_slots(collected<LayerObject>()),
                                             R"(Tasks that share experts (Ma et al., KDD 2018).

>>> layer = cairn.nn.MMoE(tasks=2, experts=3, expert_units=[8], tower_units=[1])
>>> [task.shape for task in layer(np.ones((2, 4), "float32"))]
[(2, 1), (2, 1)])")
      .def(
          "__init__",
          [](LayerOf<nn::MMoE>* self, int tasks, int experts,
             std::vector<std::int64_t> expert_units, std::vector<std::int64_t> tower_units,
             ActivationLike activation, const std::string& name, std::uint64_t seed) {
            Kept kept;
            nn::MMoEOptions options{.tasks = tasks,
                                    .experts = experts,
                                    .expert_units = std::move(expert_units),
                                    .tower_units = std::move(tower_units),
                                    .activation = activation.in(kept),
                                    .name = name,
                                    .seed = seed};
            make_layer(self, nn::MMoE(std::move(options)), std::move(kept));
          },
          "tasks"_a, "experts"_a, "expert_units"_a, "tower_units"_a = std::vector<std::int64_t>{},
          nb::kw_only(), "activation"_a = nb::none(), "name"_a = "", "seed"_a = 0)
      .def(
          "__call__",
          [](const LayerOf<nn::MMoE>& self, ArrayLike x) { return call_layer(self, Array(x)); },
          "x"_a, "One array for each task.");
}

void bind_two_tower(nb::module_& m) {
  using Towers = LayerOf<nn::TwoTower>;
  nb::class_<Towers, LayerObject>(m, "TwoTower", nb::type_slots(collected<LayerObject>()),
                                  R"(Scores of every query with every candidate of a batch.

>>> towers = cairn.nn.TwoTower(query=cairn.nn.Dense(4), candidate=cairn.nn.Dense(4))
>>> towers(np.ones((3, 2), "float32"), np.ones((3, 5), "float32")).shape
(3, 3))")
      .def(
          "__init__",
          [](Towers* self, LayerLike query, LayerLike candidate, float temperature,
             bool normalize) {
            Kept kept;
            nn::TwoTowerOptions options{.query = layer_of(query.object, kept),
                                        .candidate = layer_of(candidate.object, kept),
                                        .temperature = temperature,
                                        .normalize = normalize};
            make_layer(self, nn::TwoTower(std::move(options)), std::move(kept));
          },
          "query"_a, "candidate"_a, nb::kw_only(), "temperature"_a = 1.0, "normalize"_a = false)
      .def(
          "__call__",
          [](const Towers& self, ArrayLike query, ArrayLike candidate) {
            return call_layer(self, Array(query), Array(candidate));
          },
          "query"_a, "candidate"_a)
      .def(
          "embed_query",
          [](const Towers& self, ArrayLike query) {
            const Array x = query;
            return recorded_or_run([&] { return self.get().embed_query(x); });
          },
          "query"_a, "The queries' vectors alone.")
      .def(
          "embed_candidate",
          [](const Towers& self, ArrayLike candidate) {
            const Array x = candidate;
            return recorded_or_run([&] { return self.get().embed_candidate(x); });
          },
          "candidate"_a, "The candidates' vectors alone.");
}

// ---- click models ----

nn::ClickModelKind kind_of(const std::string& name) {
  if (name == "dlrm") return nn::ClickModelKind::kDlrm;
  if (name == "dcn_v2") return nn::ClickModelKind::kDcnV2;
  if (name == "deepfm") return nn::ClickModelKind::kDeepFm;
  throw InvalidArgumentError(
      str("a click model is \"dlrm\", \"dcn_v2\" or \"deepfm\", not \"", name, "\""));
}

void bind_click_model(nb::module_& m) {
  using Table = nn::ClickModelOptions::Table;
  nb::class_<Table>(m, "ClickTable",
                    "The table of one column of ids of a ClickModel.\n\n>>> table = "
                    "cairn.nn.ClickTable(\"user\", rows=100)")
      .def(
          "__init__",
          [](Table* self, const std::string& name, std::int64_t rows, bool hashed, bool bags,
             const RowPolicy& policy) {
            new (self)
                Table{.name = name, .rows = rows, .hashed = hashed, .bags = bags, .policy = policy};
          },
          "name"_a, "rows"_a, "hashed"_a = false, "bags"_a = false, "policy"_a = RowPolicy{},
          nb::sig("def __init__(self, name: str, rows: int, hashed: bool = False, bags: bool = "
                  "False, policy: RowPolicy = ...) -> None"));
  nb::class_<LayerOf<nn::ClickModel>, LayerObject>(
      m, "ClickModel", nb::type_slots(collected<LayerObject>()),
      R"(Numbers and ids of an example to one logit: DLRM, DCN-v2 or DeepFM.

>>> model = cairn.nn.ClickModel([cairn.nn.ClickTable("user", 100)], kind="deepfm")
>>> model(np.ones((2, 3), "float32"), [[5, 7]]).shape
(2, 1))")
      .def(
          "__init__",
          [](LayerOf<nn::ClickModel>* self, std::vector<Table> tables, const std::string& kind,
             std::int64_t dim, std::vector<std::int64_t> bottom, std::vector<std::int64_t> top,
             int cross_layers, const std::string& combiner, std::uint64_t seed) {
            nn::ClickModelOptions options{.kind = kind_of(kind),
                                          .tables = std::move(tables),
                                          .dim = dim,
                                          .bottom = std::move(bottom),
                                          .top = std::move(top),
                                          .cross_layers = cross_layers,
                                          .combiner = combiner_of(combiner),
                                          .seed = seed};
            make_layer(self, nn::ClickModel(std::move(options)), {});
          },
          "tables"_a, nb::kw_only(), "kind"_a = "dlrm", "dim"_a = 16,
          "bottom"_a = std::vector<std::int64_t>{64}, "top"_a = std::vector<std::int64_t>{256, 64},
          "cross_layers"_a = 2, "combiner"_a = "mean", "seed"_a = 0)
      .def(
          "__call__",
          [](const LayerOf<nn::ClickModel>& self, nb::handle numbers, nb::handle ids) {
            return call_layer(self, numbers.is_none() ? Array() : array_of(numbers), ids_list(ids));
          },
          "numbers"_a, "ids"_a,
          nb::sig("def __call__(self, numbers: cairn.typing.ArrayLike | None, ids: "
                  "collections.abc.Sequence[cairn.typing.IdsLike]) -> cairn._cairn.Array"));
}

}  // namespace

void bind_combining_layers(nb::module_& m) {
  bind_interactions(m);
  bind_crosses(m);
  bind_mmoe(m);
  bind_two_tower(m);
  bind_click_model(m);
}

}  // namespace cairn::python
