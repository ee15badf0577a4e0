// cairn.Variable: what is trained, wherever its strategy keeps it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/graph/function.h"
#include "core/graph/subscript.h"
#include "core/graph/variable.h"
#include "fields.h"
#include "owner.h"
#include "values.h"

namespace cairn::python {

std::vector<Subscript> subscripts_of(nb::handle parts);

namespace {

Aggregation aggregation_of(const std::string& name) {
  if (name == "none" || name == "NONE") return Aggregation::kNone;
  if (name == "sum" || name == "SUM") return Aggregation::kSum;
  if (name == "mean" || name == "MEAN") return Aggregation::kMean;
  if (name == "only_first_replica" || name == "ONLY_FIRST_REPLICA")
    return Aggregation::kOnlyFirstReplica;
  throw InvalidArgumentError(str(
      "aggregation is \"none\", \"sum\", \"mean\" or \"only_first_replica\", not \"", name, "\""));
}

Synchronization synchronization_of(const std::string& name) {
  if (name == "auto" || name == "AUTO") return Synchronization::kAuto;
  if (name == "none" || name == "NONE") return Synchronization::kNone;
  if (name == "on_write" || name == "ON_WRITE") return Synchronization::kOnWrite;
  if (name == "on_read" || name == "ON_READ") return Synchronization::kOnRead;
  throw InvalidArgumentError(
      str("synchronization is \"auto\", \"on_write\" or \"on_read\", not \"", name, "\""));
}

OwnedVariable make_variable(nb::handle initial_value, const std::string& name, bool trainable,
                            const std::string& aggregation, const std::string& synchronization,
                            nb::handle dtype) {
  Tensor value = tensor_of(initial_value);
  if (!dtype.is_none()) value = cast(Array(value), dtype_of(dtype)).eval();
  VariableSpec spec{.name = name,
                    .dtype = value.dtype(),
                    .shape = value.shape(),
                    .initializer = Initializer::from(value),
                    .aggregation = aggregation_of(aggregation),
                    .synchronization = synchronization_of(synchronization),
                    .trainable = trainable};
  VariableCreator& creator = current_variable_creator();
  return {recorded_or_run([&] { return creator.create_variable(std::move(spec)); }),
          owner_of(creator)};
}

const Words<Aggregation>& aggregations() {
  static const Words<Aggregation> words = {{"none", Aggregation::kNone},
                                           {"sum", Aggregation::kSum},
                                           {"mean", Aggregation::kMean},
                                           {"only_first_replica", Aggregation::kOnlyFirstReplica}};
  return words;
}
const Words<Synchronization>& synchronizations() {
  static const Words<Synchronization> words = {{"auto", Synchronization::kAuto},
                                               {"none", Synchronization::kNone},
                                               {"on_write", Synchronization::kOnWrite},
                                               {"on_read", Synchronization::kOnRead}};
  return words;
}

void bind_variable_spec(nb::module_& m) {
  using Spec = VariableSpec;
  nb::class_<Spec>(m, "VariableSpec", "What a variable is.")
      .def_ro("name", &Spec::name)
      .def_prop_ro("dtype", [](const Spec& of) { return std::string(dtype_name(of.dtype)); })
      .def_prop_ro(
          "shape", [](const Spec& of) { return tuple_of(of.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_ro("initializer", &Spec::initializer)
      .def_prop_ro("aggregation",
                   [](const Spec& of) { return word_of(of.aggregation, aggregations()); })
      .def_prop_ro("synchronization",
                   [](const Spec& of) { return word_of(of.synchronization, synchronizations()); })
      .def_ro("trainable", &Spec::trainable)
      .def_ro("hashed", &Spec::hashed, "Only rows that were updated take memory.")
      .def_ro("policy", &Spec::policy, "Which rows of a hashed one come and go.")
      .def_ro("one_part", &Spec::one_part, "All rows lie on one shard.")
      .def_prop_ro("rows", &Spec::rows)
      .def_prop_ro("dim", &Spec::dim, "Numbers in a row.");
}

void bind_create_variable(nb::module_& m) {
  m.def(
      "create_variable",
      [](const std::string& name, ShapeLike shape, DTypeLike dtype,
         const std::optional<Initializer>& initializer, bool trainable,
         const std::string& aggregation, const std::string& synchronization, bool hashed,
         const std::optional<RowPolicy>& policy, bool one_part) {
        VariableSpec spec{.name = name,
                          .dtype = dtype,
                          .shape = shape,
                          .initializer = initializer.value_or(Initializer::zeros()),
                          .aggregation = aggregation_of(aggregation),
                          .synchronization = synchronization_of(synchronization),
                          .trainable = trainable,
                          .hashed = hashed,
                          .policy = policy.value_or(RowPolicy{}),
                          .one_part = one_part};
        VariableCreator& creator = current_variable_creator();
        return OwnedVariable{
            recorded_or_run([&] { return creator.create_variable(std::move(spec)); }),
            owner_of(creator)};
      },
      "name"_a, "shape"_a, "dtype"_a = "float32", "initializer"_a = nb::none(), nb::kw_only(),
      "trainable"_a = true, "aggregation"_a = "none", "synchronization"_a = "auto",
      "hashed"_a = false, "policy"_a = nb::none(), "one_part"_a = false,
      "A variable of a shape, whose values an initializer makes where it lies; None: zeros. A "
      "hashed one holds the rows that were updated.\n\n>>> cairn.create_variable(\"table\", (4, "
      "2)).numpy().sum().item()\n0.0");
}

nb::object value_of(const OwnedVariable& v) {
  return nb::cast(recorded_or_run([&] { return v.get().read(); }));
}

using Assign = void (Variable::*)(const Array&) const;
void bind_assign(nb::class_<OwnedVariable>& variable, const char* name, Assign assign,
                 const char* doc) {
  variable.def(
      name,
      [assign](const OwnedVariable& to, ArrayLike value) {
        const Array array = value;
        recorded_or_run([&] { (to.get().*assign)(array); });
      },
      "value"_a, doc);
}
using Scatter = void (Variable::*)(const Array&, const Array&) const;
void bind_scatter(nb::class_<OwnedVariable>& variable, const char* name, Scatter scatter,
                  const char* doc) {
  variable.def(
      name,
      [scatter](const OwnedVariable& to, ArrayLike ids, ArrayLike rows) {
        const Array numbers = ids, values = rows;
        recorded_or_run([&] { (to.get().*scatter)(numbers, values); });
      },
      "ids"_a, "rows"_a, doc);
}

}  // namespace

void bind_variables(nb::module_& m) {
  bind_variable_spec(m);
  nb::class_<OwnedVariable> variable(
      m, "Variable",
      R"(A value that functions read and change, kept where the strategy in scope keeps it.

>>> v = cairn.Variable([1.0, 2.0], name="v")
>>> v.assign_add([1.0, 1.0])
>>> v.numpy()
array([2., 3.], dtype=float32))");
  variable
      .def(
          "__init__",
          [](OwnedVariable* made, nb::handle initial_value, const std::string& name, bool trainable,
             const std::string& aggregation, const std::string& synchronization, nb::handle dtype) {
            new (made) OwnedVariable(
                make_variable(initial_value, name, trainable, aggregation, synchronization, dtype));
          },
          "initial_value"_a, "name"_a = "Variable", "trainable"_a = true, "aggregation"_a = "none",
          "synchronization"_a = "auto", "dtype"_a = nb::none(),
          nb::sig(
              "def __init__(self, initial_value: cairn.typing.ArrayLike, name: str = 'Variable', "
              "trainable: bool = True, aggregation: str = 'none', synchronization: str = 'auto', "
              "dtype: cairn.typing.DTypeLike | None = None) -> None"))
      .def_prop_ro(
          "spec", [](const OwnedVariable& v) { return v.variable.spec(); },
          "All that it was made of.")
      .def_prop_ro(
          "name", [](const OwnedVariable& v) { return v.variable.name(); },
          "Its name, which checkpoints know it by.")
      .def_prop_ro(
          "shape", [](const OwnedVariable& v) { return tuple_of(v.variable.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The sizes of its axes.")
      .def_prop_ro(
          "dtype",
          [](const OwnedVariable& v) { return std::string(dtype_name(v.variable.spec().dtype)); },
          "The name of its elements' type.")
      .def_prop_ro(
          "trainable", [](const OwnedVariable& v) { return v.variable.spec().trainable; },
          "Whether optimizers change it.")
      .def(
          "read",
          [](const OwnedVariable& v) { return recorded_or_run([&] { return v.get().read(); }); },
          "The whole value, as an Array.")
      .def(
          "numpy",
          [](const OwnedVariable& v) {
            return numpy_of(released([&] { return v.get().read().eval(); }));
          },
          nb::sig("def numpy(self) -> cairn.typing.NDArray"), "The whole value now.")
      .def(
          "gather",
          [](const OwnedVariable& v, ArrayLike ids) {
            const Array numbers = ids;
            return recorded_or_run([&] { return v.get().gather(numbers); });
          },
          "ids"_a, "Rows by number; only these travel.")
      .def(
          "__getitem__",
          [](const OwnedVariable& v, nb::handle parts) {
            const auto subscripts = subscripts_of(parts);
            return recorded_or_run([&] { return v.get().at(subscripts).read(); });
          },
          nb::sig("def __getitem__(self, parts: cairn.typing.Subscripts) -> Array"))
      .def(
          "__setitem__",
          [](const OwnedVariable& v, nb::handle parts, ArrayLike value) {
            const auto subscripts = subscripts_of(parts);
            const Array array = value;
            recorded_or_run([&] { v.get().at(subscripts).assign(array); });
          },
          nb::sig("def __setitem__(self, parts: cairn.typing.Subscripts, value: "
                  "cairn.typing.ArrayLike) -> None"))
      .def(
          "evict",
          [](const OwnedVariable& v, ArrayLike ids) {
            const Array numbers = ids;
            recorded_or_run([&] { v.get().evict(numbers); });
          },
          "ids"_a, "These rows of a hashed variable go for good.")
      .def(
          "__array__",
          [](const OwnedVariable& v, nb::object dtype, nb::object copy) {
            nb::object value = numpy_of(released([&] { return v.get().read().eval(); }));
            (void)copy;  // the value was copied from where the variable lies
            return dtype.is_none() ? value : nb::object(value.attr("astype")(dtype));
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: cairn.typing.DTypeLike | None = None, copy: bool | "
                  "None = None) "
                  "-> cairn.typing.NDArray"))
      .def("__repr__", [](const OwnedVariable& v) {
        return str("<cairn.Variable \"", v.variable.name(), "\" ",
                   TensorType{v.variable.spec().dtype, v.variable.shape()}.to_string(), ">");
      });
  bind_assign(variable, "assign", &Variable::assign, "Becomes the value.");
  bind_assign(variable, "assign_add", &Variable::assign_add,
              "The value is added, where the variable lies.");
  bind_assign(variable, "assign_sub", &Variable::assign_sub,
              "The value is taken away, where the variable lies.");
  bind_scatter(variable, "scatter_add", &Variable::scatter_add,
               "Rows are added to those of these numbers.");
  bind_scatter(variable, "scatter_sub", &Variable::scatter_sub,
               "Rows are taken from those of these numbers.");
  bind_scatter(variable, "scatter_mul", &Variable::scatter_mul,
               "Rows multiply those of these numbers.");
  bind_scatter(variable, "scatter_div", &Variable::scatter_div,
               "Rows divide those of these numbers.");
  bind_scatter(variable, "scatter_min", &Variable::scatter_min,
               "The smaller of rows and those of these numbers.");
  bind_scatter(variable, "scatter_max", &Variable::scatter_max,
               "The larger of rows and those of these numbers.");
  bind_scatter(variable, "scatter_update", &Variable::scatter_update,
               "Rows take the place of those of these numbers.");
  bind_scatter(variable, "batch_scatter_update", &Variable::batch_scatter_update,
               "The same for each of the leading dimensions of a batch.");

  bind_create_variable(m);

  // Operators: a variable is its value.
  static constexpr const char* kOperators[] = {
      "__add__",      "__radd__", "__sub__",  "__rsub__", "__mul__",  "__rmul__",   "__truediv__",
      "__rtruediv__", "__mod__",  "__rmod__", "__pow__",  "__rpow__", "__matmul__", "__rmatmul__",
      "__lt__",       "__le__",   "__gt__",   "__ge__",   "__eq__",   "__ne__"};
  for (const char* name : kOperators)
    variable.def(
        name,
        [name = name](const OwnedVariable& v, nb::object other) {
          return value_of(v).attr(name)(other);
        },
        nb::is_operator(), "other"_a,
        nb::sig(str("def ", name, "(self, other: cairn.typing.ArrayLike, /) -> Array").c_str()));
  static constexpr std::pair<const char*, const char*> kOthers[] = {
      {"__neg__", "Array"},
      {"__abs__", "Array"},
      {"__bool__", "bool"},
      {"__float__", "float"},
      {"__int__", "int"},
      {"__len__", "int"},
      {"__iter__", "collections.abc.Iterator[typing.Any]"}};
  for (const auto& [name, result] : kOthers)
    variable.def(
        name,
        [name = name](const OwnedVariable& v) -> nb::object { return value_of(v).attr(name)(); },
        nb::sig(str("def ", name, "(self) -> ", result).c_str()));
  variable
      .def(
          "__contains__",
          [](const OwnedVariable& v, nb::object element) -> nb::object {
            return value_of(v).attr("__contains__")(element);
          },
          "element"_a, nb::sig("def __contains__(self, element: object) -> bool"))
      .def("__hash__",
           [](const OwnedVariable& v) { return std::hash<std::string>()(v.variable.name()); });
}

}  // namespace cairn::python
