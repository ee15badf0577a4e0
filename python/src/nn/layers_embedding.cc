// cairn.nn: tables of vectors, and what looks up in them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

std::optional<Combiner> maybe_combiner(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  return combiner_of(*name);
}

// embedding(ids), embedding(values, row_splits), embedding(values, row_splits, weights).
template <typename L>
Array looked_up(const LayerOf<L>& self, IdsLike ids, nb::handle row_splits, nb::handle weights) {
  nn::Ids all = ids;
  if (!row_splits.is_none()) all.row_splits = cast(array_of(row_splits), DType::kInt64);
  if (!weights.is_none()) all.weights = array_of(weights);
  return call_layer(self, all);
}
template <typename L>
void bind_lookup(LayerClass<L>& layer) {
  layer.def(
      "__call__",
      [](const LayerOf<L>& self, IdsLike ids, nb::handle row_splits, nb::handle weights) {
        return looked_up(self, ids, row_splits, weights);
      },
      "ids"_a, "row_splits"_a = nb::none(), "weights"_a = nb::none(),
      nb::sig("def __call__(self, ids: cairn.typing.IdsLike, row_splits: cairn.typing.ArrayLike | "
              "None = None, weights: cairn.typing.ArrayLike | None = None) -> cairn._cairn.Array"),
      "Vectors for ids: one each, several each, or bags that begin at `row_splits`.");
  variable_property<L>(layer, "table", &L::table, "The rows.");
}

void bind_embedding(nb::module_& m) {
  nb::class_<LayerOf<nn::Embedding>, LayerObject> embedding(
      m, "Embedding", nb::type_slots(collected<LayerObject>()),
      R"(A table of vectors, looked up by id.

>>> table = cairn.nn.Embedding(rows=1000, dim=4)
>>> table([1, 2, 1]).shape
(3, 4)
>>> cairn.nn.Embedding(rows=1000, dim=4, combiner="mean")([1, 2, 1], row_splits=[0, 2, 3]).shape
(2, 4))");
  embedding.def(
      "__init__",
      [](LayerOf<nn::Embedding>* self, std::int64_t rows, std::int64_t dim,
         const std::optional<std::string>& combiner, InitializerLike initializer, bool hashed,
         const RowPolicy& policy, RegularizerLike rows_regularizer,
         RegularizerLike activity_regularizer, const std::string& name, std::uint64_t seed) {
        Kept kept;
        nn::EmbeddingOptions options{.name = name,
                                     .rows = rows,
                                     .dim = dim,
                                     .combiner = maybe_combiner(combiner),
                                     .initializer = initializer.maybe(rows, dim, seed),
                                     .seed = seed,
                                     .hashed = hashed,
                                     .policy = policy,
                                     .rows_regularizer = rows_regularizer.in(kept),
                                     .activity_regularizer = activity_regularizer.in(kept)};
        make_layer(self, nn::Embedding(std::move(options)), std::move(kept));
      },
      "rows"_a, "dim"_a, "combiner"_a = nb::none(), nb::kw_only(), "initializer"_a = nb::none(),
      "hashed"_a = false, "policy"_a = RowPolicy{}, "rows_regularizer"_a = nb::none(),
      "activity_regularizer"_a = nb::none(), "name"_a = "", "seed"_a = 0,
      nb::sig(
          "def __init__(self, rows: int, dim: int, combiner: str | None = None, *, initializer: "
          "cairn.typing.InitializerLike = None, hashed: bool = False, policy: RowPolicy = ..., "
          "rows_regularizer: cairn.typing.RegularizerLike = None, activity_regularizer: "
          "cairn.typing.RegularizerLike = None, name: str = '', seed: int = 0) -> None"));
  bind_lookup<nn::Embedding>(embedding);
}

void bind_embedding_table(nb::module_& m) {
  using Table = LayerOf<nn::EmbeddingTable>;
  nb::class_<Table, LayerObject> table(
      m, "EmbeddingTable", nb::type_slots(collected<LayerObject>()),
      R"(Vectors for keys of 64 bits, of which nobody has to say how many there are.

>>> cairn.nn.EmbeddingTable(dim=4)([123456789012, -1]).shape
(2, 4))");
  table
      .def(
          "__init__",
          [](Table* self, std::int64_t dim, const std::optional<std::string>& combiner,
             InitializerLike initializer, const RowPolicy& policy, RegularizerLike rows_regularizer,
             RegularizerLike activity_regularizer, const std::string& name, std::uint64_t seed) {
            Kept kept;
            nn::EmbeddingTableOptions options{
                .name = name,
                .dim = dim,
                .combiner = maybe_combiner(combiner),
                .initializer = initializer.maybe(dim, dim, seed),
                .seed = seed,
                .policy = policy,
                .rows_regularizer = rows_regularizer.in(kept),
                .activity_regularizer = activity_regularizer.in(kept)};
            make_layer(self, nn::EmbeddingTable(std::move(options)), std::move(kept));
          },
          "dim"_a, "combiner"_a = nb::none(), nb::kw_only(), "initializer"_a = nb::none(),
          "policy"_a = RowPolicy{}, "rows_regularizer"_a = nb::none(),
          "activity_regularizer"_a = nb::none(), "name"_a = "", "seed"_a = 0,
          nb::sig("def __init__(self, dim: int, combiner: str | None = None, *, initializer: "
                  "cairn.typing.InitializerLike = None, policy: RowPolicy = ..., rows_regularizer: "
                  "cairn.typing.RegularizerLike = None, activity_regularizer: "
                  "cairn.typing.RegularizerLike = None, name: str = '', seed: int = 0) -> None"))
      .def(
          "evict",
          [](const Table& self, ArrayLike keys) {
            const Array which = keys;
            recorded_or_run([&] { self.get().evict(which); });
          },
          "keys"_a, "These keys go for good.")
      .def_prop_ro(
          "rows", [](const Table& self) { return self.get().rows(); },
          "The numbers that rows may have.")
      .def(
          "row_of", [](const Table& self, std::int64_t key) { return self.get().row_of(key); },
          "key"_a, "The row of a key.")
      .def(
          "key_of", [](const Table& self, std::int64_t row) { return self.get().key_of(row); },
          "row"_a, "The least key of a row.");
  bind_lookup<nn::EmbeddingTable>(table);
}

void bind_id_cross(nb::module_& m) {
  nb::class_<nn::IdCross>(m, "IdCross",
                          R"(One id for each combination of the ids of several columns.

>>> cairn.nn.IdCross([3, 4])([[2], [1]]).numpy().tolist()
[9])")
      .def(
          "__init__",
          [](nn::IdCross* self, std::vector<std::int64_t> rows, std::int64_t buckets) {
            new (self) nn::IdCross(std::move(rows), buckets);
          },
          "rows"_a, "buckets"_a = 0)
      .def_prop_ro("rows", &nn::IdCross::rows, "How many different ids there are.")
      .def(
          "__call__",
          [](const nn::IdCross& self, ArrayList ids) {
            std::vector<Array> all = ids;
            for (Array& each : all) each = cast(each, DType::kInt64);
            return self(all);
          },
          "ids"_a);
}

// ---- the wide part ----

void bind_wide(nb::module_& m) {
  nb::class_<nn::WideColumn>(
      m, "WideColumn",
      "A column of ids in [0, rows).\n\n>>> column = cairn.nn.WideColumn(\"user\", rows=100)")
      .def(
          "__init__",
          [](nn::WideColumn* self, const std::string& name, std::int64_t rows, bool bags,
             const std::string& weights) {
            new (self) nn::WideColumn{.name = name, .rows = rows, .bags = bags, .weights = weights};
          },
          "name"_a, "rows"_a, "bags"_a = false, "weights"_a = "");
  nb::class_<nn::WideCross>(m, "WideCross",
                            "A weight for each combination of columns' values.\n\n>>> cross = "
                            "cairn.nn.WideCross([\"user\", \"item\"], buckets=1000)")
      .def(
          "__init__",
          [](nn::WideCross* self, std::vector<std::string> columns, std::int64_t buckets) {
            new (self) nn::WideCross{.columns = std::move(columns), .buckets = buckets};
          },
          "columns"_a, "buckets"_a = 0);
  nb::class_<LayerOf<nn::Wide>, LayerObject> wide(
      m, "Wide", nb::type_slots(collected<LayerObject>()),
      R"(A linear model over columns of ids and their crosses (arXiv:1606.07792).

>>> column = cairn.nn.WideColumn
>>> wide = cairn.nn.Wide([column("a", 3), column("b", 4)], [cairn.nn.WideCross(["a", "b"])])
>>> wide([[2, 1], [0, 3]]).shape
(2, 1))");
  wide.def(
          "__init__",
          [](LayerOf<nn::Wide>* self, std::vector<nn::WideColumn> columns,
             std::vector<nn::WideCross> crosses, bool use_bias, InitializerLike initializer,
             const std::string& name, bool hashed) {
            nn::WideOptions options{.columns = std::move(columns),
                                    .crosses = std::move(crosses),
                                    .use_bias = use_bias,
                                    .initializer = initializer.value(1, 1),
                                    .name = name,
                                    .hashed = hashed};
            make_layer(self, nn::Wide(std::move(options)), {});
          },
          "columns"_a, "crosses"_a = std::vector<nn::WideCross>{}, nb::kw_only(),
          "use_bias"_a = false, "initializer"_a = nb::none(), "name"_a = "wide", "hashed"_a = false)
      .def(
          "__call__",
          [](const LayerOf<nn::Wide>& self, nb::handle features) {
            if (nb::isinstance<Features>(features))
              return call_layer(self, nb::cast<const Features&>(features));
            return call_layer(self, ids_list(features));
          },
          "features"_a,
          nb::sig("def __call__(self, features: cairn._cairn.Features | "
                  "collections.abc.Sequence[cairn.typing.IdsLike]) -> cairn._cairn.Array"),
          "The features by the columns' names, or ids beside the columns.")
      .def_prop_ro(
          "rows", [](const LayerOf<nn::Wide>& self) { return self.get().rows(); },
          "Rows of all columns and crosses.");
}

// ---- lookups without a layer ----

nn::SafeLookupOptions safe_options(const std::string& combiner,
                                   std::optional<std::int64_t> default_id, nb::handle weights) {
  return {.combiner = combiner_of(combiner),
          .default_id = default_id,
          .weights = weights.is_none() ? Array() : array_of(weights)};
}

void bind_safe_lookups(nb::module_& m) {
  m.def(
      "safe_embedding_lookup_sparse",
      [](const OwnedVariable& table, ArrayLike ids, ArrayLike row_splits,
         const std::string& combiner, std::optional<std::int64_t> default_id, nb::handle weights) {
        const Array values = ids, splits = cast(row_splits, DType::kInt64);
        const auto options = safe_options(combiner, default_id, weights);
        return recorded_or_run(
            [&] { return nn::safe_embedding_lookup_sparse(table.get(), values, splits, options); });
      },
      "table"_a, "ids"_a, "row_splits"_a, nb::kw_only(), "combiner"_a = "mean",
      "default_id"_a = nb::none(), "weights"_a = nb::none(),
      nb::sig("def safe_embedding_lookup_sparse(table: cairn._cairn.Variable, ids: "
              "cairn.typing.ArrayLike, row_splits: cairn.typing.ArrayLike, *, combiner: str = "
              "'mean', default_id: int | None = None, weights: cairn.typing.ArrayLike | None = "
              "None) -> cairn._cairn.Array"),
      "Bags of ids, of which those below 0 count as missing, and an example without any gives "
      "zeros.\n\n>>> table = cairn.Variable([[1.0], [3.0]])\n>>> "
      "cairn.nn.safe_embedding_lookup_sparse(table, [0, 1, -1], row_splits=[0, 2, "
      "3]).numpy()\narray([[2.],\n       [0.]], dtype=float32)");
  m.def(
      "safe_embedding_lookup",
      [](const OwnedVariable& table, ArrayLike ids, const std::string& combiner,
         std::optional<std::int64_t> default_id, nb::handle weights) {
        const Array values = ids;
        const auto options = safe_options(combiner, default_id, weights);
        return recorded_or_run(
            [&] { return nn::safe_embedding_lookup(table.get(), values, options); });
      },
      "table"_a, "ids"_a, nb::kw_only(), "combiner"_a = "mean", "default_id"_a = nb::none(),
      "weights"_a = nb::none(),
      nb::sig("def safe_embedding_lookup(table: cairn._cairn.Variable, ids: "
              "cairn.typing.ArrayLike, *, combiner: str = 'mean', default_id: int | None = None, "
              "weights: cairn.typing.ArrayLike | None = None) -> cairn._cairn.Array"),
      "The same for examples that are padded to one number of ids, as a rule by -1.\n\n>>> table = "
      "cairn.Variable([[1.0], [3.0]])\n>>> cairn.nn.safe_embedding_lookup(table, [[0, 1], [1, "
      "-1]]).numpy()\narray([[2.],\n       [3.]], dtype=float32)");
}

}  // namespace

void bind_embedding_layers(nb::module_& m) {
  bind_embedding(m);
  bind_embedding_table(m);
  bind_id_cross(m);
  bind_wide(m);
  bind_safe_lookups(m);
}

}  // namespace cairn::python
