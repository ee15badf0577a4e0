#include "layer_options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "fields.h"
#include "layer_object.h"
#include "refusing.h"

namespace cairn::python {
namespace {

[[noreturn]] void refuse(const char* what, const char* wanted, nb::handle object) {
  type_error(str(what, " is ", wanted, ", not ", described(object)));
}

Initializer initializer_from(nb::handle object) {
  if (nb::isinstance<Initializer>(object)) return nb::cast<const Initializer&>(object);
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()))
    return Initializer::constant(nb::cast<float>(object));
  return Initializer::from(tensor_of(object));
}

void bind_initializer(nb::module_& m) {
  nb::class_<Initializer>(m, "Initializer", R"(How a variable begins.

>>> cairn.nn.Dense(1, kernel_initializer=cairn.nn.Initializer.uniform(-0.1, 0.1, seed=3))
<cairn.nn.Dense "dense">)")
      .def_static("zeros", &Initializer::zeros, "0 everywhere.")
      .def_static("constant", &Initializer::constant, "value"_a, "The same value everywhere.")
      .def_static("uniform", &Initializer::uniform, "low"_a, "high"_a, "seed"_a = 0,
                  "Evenly distributed from `low` up to `high`.")
      .def_static("normal", &Initializer::normal, "mean"_a, "stddev"_a, "seed"_a = 0,
                  "Normally distributed.")
      .def_static("truncated_normal", &Initializer::truncated_normal, "mean"_a, "stddev"_a,
                  "seed"_a = 0, "Normally distributed, drawn again beyond two deviations.")
      .def_static("glorot_uniform", &Initializer::glorot_uniform, "fan_in"_a, "fan_out"_a,
                  "seed"_a = 0, "Glorot and Bengio, AISTATS 2010.")
      .def_static("he_normal", &Initializer::he_normal, "fan_in"_a, "seed"_a = 0,
                  "He et al., ICCV 2015.")
      .def_static("orthogonal", &nn::orthogonal, "rows"_a, "columns"_a, "seed"_a = 0,
                  "Orthonormal rows or columns (Saxe et al., arXiv:1312.6120).")
      .def_prop_ro(
          "kind",
          [](const Initializer& of) {
            return word_of(of.kind, Words<Initializer::Kind>{
                                        {"zeros", Initializer::Kind::kZeros},
                                        {"constant", Initializer::Kind::kConstant},
                                        {"uniform", Initializer::Kind::kUniform},
                                        {"normal", Initializer::Kind::kNormal},
                                        {"truncated_normal", Initializer::Kind::kTruncatedNormal},
                                        {"value", Initializer::Kind::kValue}});
          },
          "\"zeros\", \"constant\", \"uniform\", \"normal\", \"truncated_normal\" or \"value\".")
      .def_ro("a", &Initializer::a, "The value, the lowest value, or the mean.")
      .def_ro("b", &Initializer::b, "The upper bound, or the standard deviation.")
      .def_ro("seed", &Initializer::seed)
      .def_prop_ro(
          "value",
          [](const Initializer& of) {
            return of.value.defined() ? numpy_of(of.value) : nb::object(nb::none());
          },
          nb::sig("def value(self) -> cairn.typing.NDArray | None"), "The whole value; None: none.")
      .def_static(
          "from_value", [](ArrayLike value) { return Initializer::from(tensor_of(value.object)); },
          "value"_a, "Begins with this value.");
}

void bind_regularizer(nb::module_& m) {
  nb::class_<RegularizerObject>(m, "Regularizer",
                                "A term of the loss that keeps weights or outputs small.\n\n>>> "
                                "layer = cairn.nn.Dense(1, kernel_regularizer=cairn.nn.l2(0.01))")
      .def(
          "__call__",
          [](const RegularizerObject& self, ArrayLike x) { return self.function(Array(x)); }, "x"_a,
          "The term, a scalar.");
  m.def(
      "l1", [](float strength) { return RegularizerObject{nn::l1(strength)}; }, "strength"_a = 0.01,
      "strength times the sum of the absolute values.\n\n>>> cairn.nn.l1(0.5)([1.0, "
      "-3.0]).item()\n2.0");
  m.def(
      "l2", [](float strength) { return RegularizerObject{nn::l2(strength)}; }, "strength"_a = 0.01,
      "strength times the sum of the squares.\n\n>>> cairn.nn.l2(0.5)([1.0, -3.0]).item()\n5.0");
  m.def(
      "l1_l2", [](float l1, float l2) { return RegularizerObject{nn::l1_l2(l1, l2)}; },
      "l1"_a = 0.01, "l2"_a = 0.01,
      "The sum of both.\n\n>>> cairn.nn.l1_l2(0.5, 0.5)([1.0, -3.0]).item()\n7.0");
}

void bind_row_policy(nb::module_& m) {
  nb::class_<RowPolicy>(m, "RowPolicy",
                        R"(Which rows of a hashed variable come to be, and which go again.

>>> cairn.nn.EmbeddingTable(dim=8, policy=cairn.nn.RowPolicy(admit_after=2, rows_max=1_000_000))
<cairn.nn.EmbeddingTable "embedding_table">)")
      .def(
          "__init__",
          [](RowPolicy* self, std::uint32_t admit_after, std::int64_t sketch_rows,
             double admit_probability, std::int64_t rows_max, std::int64_t steps_to_live,
             double spared_norm, bool evictable) {
            new (self) RowPolicy{.admit_after = admit_after,
                                 .sketch_rows = sketch_rows,
                                 .admit_probability = admit_probability,
                                 .rows_max = rows_max,
                                 .steps_to_live = steps_to_live,
                                 .spared_norm = spared_norm,
                                 .evictable = evictable};
            if (const std::string reason = why_not(*self); !reason.empty())
              throw InvalidArgumentError(reason);
          },
          nb::kw_only(), "admit_after"_a = 1, "sketch_rows"_a = 1 << 20,
          "admit_probability"_a = 1.0, "rows_max"_a = 0, "steps_to_live"_a = 0,
          "spared_norm"_a = 0.0, "evictable"_a = false)
      .def_ro("admit_after", &RowPolicy::admit_after,
              "A row is made by the update that names it for about this many times.")
      .def_ro("sketch_rows", &RowPolicy::sketch_rows, "How many counters each part has for that.")
      .def_ro("admit_probability", &RowPolicy::admit_probability,
              "Or by each update that names it, with this probability.")
      .def_ro("rows_max", &RowPolicy::rows_max, "The most rows of the whole variable; 0: no bound.")
      .def_ro("steps_to_live", &RowPolicy::steps_to_live,
              "A row goes that no update has named for so many updates; 0: none does.")
      .def_ro("spared_norm", &RowPolicy::spared_norm,
              "But not one whose L2 norm is at least this; 0: the norm does not matter.")
      .def_ro("evictable", &RowPolicy::evictable, "Rows may go by evict().")
      .def_prop_ro("admits_all", &RowPolicy::admits_all, "Whether each update makes its rows.")
      .def_prop_ro("evicts", &RowPolicy::evicts, "Whether rows may go.")
      .def_prop_ro("keeps_all", &RowPolicy::keeps_all, "Whether all rows come, and stay.");
}

void bind_ids(nb::module_& m) {
  nb::class_<nn::Ids>(m, "Ids", R"(Bags of ids: each example has any number of them.

>>> ids = cairn.nn.Ids([3, 1, 2], row_splits=[0, 1, 3])
>>> cairn.nn.Embedding(rows=4, dim=2, combiner="sum")(ids).shape
(2, 2))")
      .def(
          "__init__",
          [](nn::Ids* self, ArrayLike values, ArrayLike row_splits, ArrayLike weights) {
            new (self) nn::Ids{.values = values,
                               .row_splits = row_splits.object.is_none() ? Array() : row_splits,
                               .weights = weights.object.is_none() ? Array() : weights};
            if (self->row_splits.defined())
              self->row_splits = cast(self->row_splits, DType::kInt64);
          },
          "values"_a, "row_splits"_a = nb::none(), "weights"_a = nb::none(),
          nb::sig("def __init__(self, values: cairn.typing.ArrayLike, row_splits: "
                  "cairn.typing.ArrayLike | None = None, weights: cairn.typing.ArrayLike | None = "
                  "None) -> None"));
}

}  // namespace

nn::Activation ActivationLike::in(Kept& kept) const {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::str>(object)) return nn::Activation(nb::cast<std::string>(object));
  if (PyCallable_Check(object.ptr()) == 0)
    refuse("an activation", "a name or a function of an array", object);
  return [function = kept.keep(object)](const Array& x) {
    const Acquired here;
    return array_of(call_recorded(function, x));
  };
}

nn::KernelInitializer InitializerLike::kernel(Kept& kept) const {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::str>(object)) return nn::KernelInitializer(nb::cast<std::string>(object));
  if (PyCallable_Check(object.ptr()) == 0 || nb::isinstance<Initializer>(object))
    return nn::KernelInitializer(initializer_from(object));
  return nn::KernelInitializer(
      [function = kept.keep(object)](std::int64_t in, std::int64_t out, std::uint64_t seed) {
        const Acquired here;
        return initializer_from(nb::borrow(function->get())(in, out, seed));
      });
}

std::optional<Initializer> InitializerLike::maybe(std::int64_t fan_in, std::int64_t fan_out,
                                                  std::uint64_t seed) const {
  if (object.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(object))
    return nn::initializer(nb::cast<std::string>(object))(fan_in, fan_out, seed);
  if (PyCallable_Check(object.ptr()) != 0 && !nb::isinstance<Initializer>(object))
    return initializer_from(nb::borrow(object)(fan_in, fan_out, seed));
  return initializer_from(object);
}
Initializer InitializerLike::value(std::int64_t fan_in, std::int64_t fan_out,
                                   std::uint64_t seed) const {
  return maybe(fan_in, fan_out, seed).value_or(Initializer());
}

nn::Regularizer RegularizerLike::in(Kept& kept) const {
  if (object.is_none()) return {};
  if (nb::isinstance<RegularizerObject>(object))
    return nb::cast<const RegularizerObject&>(object).function;
  if (nb::isinstance<nb::str>(object)) {
    const auto name = nb::cast<std::string>(object);
    if (name == "l1" || name == "L1") return nn::l1();
    if (name == "l2" || name == "L2") return nn::l2();
    if (name == "l1_l2" || name == "L1L2") return nn::l1_l2();
    throw InvalidArgumentError(
        str("a regularizer is \"l1\", \"l2\" or \"l1_l2\" by name, not \"", name, "\""));
  }
  if (PyCallable_Check(object.ptr()) == 0)
    refuse("a regularizer", "a name, cairn.nn.l2(...) or a function of an array", object);
  return [function = kept.keep(object)](const Array& x) {
    const Acquired here;
    return array_of(call_recorded(function, x));
  };
}

IdsLike::operator nn::Ids() const {
  if (nb::isinstance<nn::Ids>(object)) return nb::cast<const nn::Ids&>(object);
  return {.values = array_of(object)};
}
std::vector<nn::Ids> ids_list(nb::handle list) {
  if (!nb::isinstance<nb::list>(list) && !nb::isinstance<nb::tuple>(list))
    refuse("the ids of several columns", "a list", list);
  std::vector<nn::Ids> all;
  for (nb::handle each : list) all.push_back(IdsLike{each});
  return all;
}

std::array<std::int64_t, 2> sizes_of(const Sizes& sizes) {
  if (const std::int64_t* one = std::get_if<std::int64_t>(&sizes)) return {*one, *one};
  return std::get<std::array<std::int64_t, 2>>(sizes);
}

void bind_layer_options(nb::module_& m) {
  bind_initializer(m);
  bind_regularizer(m);
  bind_row_policy(m);
  bind_ids(m);
}

}  // namespace cairn::python
