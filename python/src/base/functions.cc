#include "functions.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/graph/variable.h"
#include "data/dataset/dataset.h"
#include "strategy/base/distributed_values.h"
#include "values.h"

namespace cairn::python {

// ---- results ----

std::string Results::add(Nest nest, const std::string& function) {
  const std::vector<std::string> names = nest.paths();
  for (std::string ending;; ending += '\'') {
    std::vector<std::string> ended = names;
    for (std::string& name : ended) name += ending;
    const auto [found, is_new] = nests_.try_emplace(std::move(ended), nest);
    if (is_new || found->second.key() == nest.key()) return ending;
    if (names.empty())
      throw InvalidArgumentError(
          str("the function \"", function,
              "\" returned nothing in another way than when it was recorded before, as None and [] "
              "are: let it return the same"));
  }
}

void Results::replace(Nest nest) {
  std::vector<std::string> names = nest.paths();
  nests_.insert_or_assign(std::move(names), std::move(nest));
}

nb::object Results::around(const std::vector<std::string>& names,
                           const std::vector<nb::object>& leaves) const {
  const auto found = nests_.find(names);
  if (found != nests_.end()) return found->second.around(leaves);
  nb::list plain;  // of a function that C++ made
  for (const nb::object& leaf : leaves) plain.append(leaf);
  return plain;
}

namespace {

// "train.py:31, in step: " for the line that returns; empty where that is not known.
std::string line_that_returns(nb::handle callable) {
  try {
    return nb::cast<std::string>(
        nb::module_::import_("cairn._recorded").attr("line_that_returns")(callable));
  } catch (const nb::python_error&) {
    return "";
  }
}

Array output_of(nb::handle leaf) {
  if (nb::isinstance<nb::str>(leaf) || nb::isinstance<nb::bytes>(leaf) ||
      nb::isinstance<PerReplica>(leaf))
    type_error("a recorded function returns arrays, in dicts, lists and tuples");
  return array_of(leaf);
}

}  // namespace

Outputs outputs_of(nb::handle returned, const std::string& function, nb::handle callable,
                   Nest* shape) {
  const auto place = [&](nb::handle value, const std::string& name) {
    const auto kind = nb::cast<std::string>(nb::handle(value.type()).attr("__name__"));
    return str(line_that_returns(callable), function, " returned ",
               kind == "NoneType" ? "None" : "a " + kind,
               name.empty() ? "" : " as \"" + name + "\"");
  };
  std::vector<nb::object> leaves;
  at_place([&] { return place(returned, ""); }, [&] { *shape = Nest::of(returned, leaves, true); });
  const std::vector<std::string> names = shape->paths();
  Outputs outputs;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    at_place([&] { return place(leaves[i], names[i]); },
             [&] { outputs.emplace_back(names[i], output_of(leaves[i])); });
  return outputs;
}

// ---- the function ----

TracedFunction::TracedFunction(nb::object callable, std::string name, SharedOwner owner)
    : name_(std::move(name)), owner_(std::move(owner)) {
  require_function(callable, "a function is made of something that can be called");
  callable_ = share(std::move(callable));
}

nb::object TracedFunction::callable() const {
  if (callable_ == nullptr) throw FailedPreconditionError("the function was let go of");
  return nb::borrow(callable_->get());
}

TracedFunction::Call TracedFunction::call(const nb::args& args, const nb::kwargs& kwargs) {
  Call made;
  if (args.size() == 0 && kwargs.size() == 0 && plain_ != nullptr) {
    made.function = &plain_->function;
    made.results = plain_->results;
    return made;
  }
  Nest shape = at_place(
      [&] { return str("the function \"", name_, "\""); },
      [&] {
        return Nest::of(nb::make_tuple(nb::borrow<nb::tuple>(args), nb::borrow<nb::dict>(kwargs)),
                        made.leaves);
      });
  Variant& found = variant(std::move(shape), made.leaves.size());
  made.function = &found.function;
  made.results = found.results;
  return made;
}

std::string TracedFunction::place_of(const nb::args& args, const nb::kwargs& kwargs,
                                     std::size_t leaf) const {
  std::string path;
  try {
    path = nb::cast<std::string>(nb::module_::import_("cairn._recorded")
                                     .attr("path_of")(callable(), nb::borrow<nb::tuple>(args),
                                                      nb::borrow<nb::dict>(kwargs), leaf));
  } catch (const nb::python_error&) {
    // a callable that does not tell its parameters
  }
  return str("the function \"", name_, "\"", path.empty() ? "" : ", argument \"" + path + "\"");
}

TracedFunction::Variant& TracedFunction::variant(Nest shape, std::size_t leaves) {
  const auto known = variants_.find(shape.key());
  if (known != variants_.end()) return known->second;
  auto results = std::make_shared<Results>();
  const std::string key = shape.key();
  auto body = [callable = callable_, results, name = name_,
               shape = std::make_shared<const Nest>(std::move(shape))](
                  const std::vector<TraceArgument>& arguments) {
    const Acquired here;
    const Tracing tracing;
    std::vector<nb::object> given;
    for (const TraceArgument& argument : arguments)
      given.push_back(std::visit([](const auto& value) { return nb::cast(value); }, argument));
    const nb::tuple all = nb::borrow<nb::tuple>(shape->around(given));
    nb::object returned = nb::steal(
        PyObject_Call(callable->get().ptr(), nb::object(all[0]).ptr(), nb::object(all[1]).ptr()));
    if (!returned.is_valid()) nb::raise_python_error();
    Nest nest;
    Outputs outputs = outputs_of(returned, "the function \"" + name + "\"", callable->get(), &nest);
    const std::string ending = results->add(std::move(nest), name);
    for (auto& [path, value] : outputs) path += ending;
    return outputs;
  };
  Variant& made =
      variants_.emplace(key, Variant{Function::of(std::move(body), leaves, name_), results})
          .first->second;
  if (leaves == 0 && key == "t(t()d())") plain_ = &made;
  return made;
}

namespace {

struct SpecOf final : IteratorSource {
  explicit SpecOf(ElementSpec made) : spec(std::move(made)) {}
  const ElementSpec& element_spec() const override { return spec; }
  ElementSpec spec;
};

Argument argument_of(const nb::object& leaf) {
  if (nb::isinstance<Dataset>(leaf))
    return std::make_shared<const SpecOf>(nb::cast<const Dataset&>(leaf).element_spec());
  return tensor_of(leaf);
}

}  // namespace

std::shared_ptr<const ConcreteFunction> TracedFunction::concrete(const nb::args& args,
                                                                 const nb::kwargs& kwargs) {
  Strategy& strategy = owner_->strategy();
  const Call made = call(args, kwargs);
  std::vector<Argument> arguments;
  for (const nb::object& leaf : made.leaves) arguments.push_back(argument_of(leaf));
  return recorded_or_run([&] { return made.function->concrete(arguments, strategy); });
}

int TracedFunction::traverse(visitproc visit, void* argument) const {
  if (callable_ == nullptr) return 0;
  return visit(callable_->get().ptr(), argument);
}

void TracedFunction::clear() {
  plain_ = nullptr;
  variants_.clear();
  callable_.reset();
  drop_references();
}

// ---- what a function is given ----

namespace {

int traverse_function(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<TracedFunction>(self)->traverse(visit, arg);
}
int clear_function(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<TracedFunction>(self)->clear();
  return 0;
}
PyType_Slot function_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_function)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_function)},
                                {0, nullptr}};

nb::list columns_of(const Features& features) {
  nb::list names;
  for (const ColumnSpec& column : features.spec().columns) names.append(column.name);
  return names;
}

}  // namespace

void bind_functions(nb::module_& m) {
  nb::class_<Features>(m, "Features", R"(The columns of an element apart from its label, by name.

>>> network = lambda features: features["a"] + features["b"]
>>> cairn.Model(network).predict({"a": [1.0], "b": [2.0]})
array([3.], dtype=float32))")
      .def(
          "__getitem__", [](const Features& of, const std::string& name) { return of[name]; },
          "name"_a)
      .def(
          "values", [](const Features& of, const std::string& name) { return of.values(name); },
          "name"_a, "The values of a ragged column, of all examples.")
      .def(
          "row_splits",
          [](const Features& of, const std::string& name) { return of.row_splits(name); }, "name"_a,
          "Where among the values of a ragged column each example's begin and end.")
      .def("keys", &columns_of, nb::sig("def keys(self) -> list[str]"), "The names of the columns.")
      .def(
          "__iter__", [](const Features& of) { return columns_of(of).attr("__iter__")(); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("__len__", [](const Features& of) { return of.spec().columns.size(); })
      .def("__contains__", [](const Features& of, const std::string& name) {
        const auto& columns = of.spec().columns;
        return std::any_of(columns.begin(), columns.end(),
                           [&](const ColumnSpec& column) { return column.name == name; });
      });
  nb::class_<Batch>(m, "Batch", R"(One element of a dataset: `features, label = batch`.

>>> strategy = cairn.OneDeviceStrategy()
>>> @strategy.function
... def total(batches):
...     features, label = batches.get_next()
...     return cairn.sum(features["x"] * label)
>>> data = cairn.Dataset.from_tensor_slices({"x": [1.0, 2.0], "y": [3.0, 4.0]}, label="y")
>>> strategy.run(total, strategy.iterate(data.batch(2))).item()
11.0)")
      .def_ro("features", &Batch::features)
      .def_prop_ro(
          "label",
          [](const Batch& batch) -> std::optional<Array> {
            if (!batch.label.defined()) return std::nullopt;
            return batch.label;
          },
          "None: the dataset names no label.")
      .def(
          "__getitem__",
          [](const Batch& batch, const std::string& name) { return batch.features[name]; },
          "name"_a)
      .def(
          "__iter__",
          [](const Batch& batch) {
            nb::object label = batch.label.defined() ? nb::cast(batch.label) : nb::none();
            return nb::make_tuple(nb::cast(batch.features), label).attr("__iter__")();
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[typing.Any]"));
  nb::class_<Iterator>(m, "Iterator", R"(An iterator argument of a function that is being recorded.

>>> strategy = cairn.OneDeviceStrategy()
>>> @strategy.function
... def first(batches):
...     return batches.get_next()["value"]
>>> strategy.run(first, strategy.iterate(cairn.Dataset.range(4).batch(2))).numpy()
array([0, 1]))")
      .def("get_next", &Iterator::get_next, "Takes the next element.")
      .def("__next__", &Iterator::get_next)
      .def(
          "__iter__",
          [](nb::handle) -> nb::object {
            throw nb::type_error(
                "a step takes one element by get_next(): a loop over the data is outside of "
                "the function, around the steps");
          },
          nb::sig("def __iter__(self) -> typing.NoReturn"));
  nb::class_<TracedFunction>(
      m, "Function", nb::type_slots(function_slots),
      R"(A Python function that is recorded once for each kind of arguments, and run
wherever the strategy runs it: made by `@strategy.function`.

>>> strategy = cairn.OneDeviceStrategy()
>>> @strategy.function
... def double(x):
...     return 2.0 * x
>>> strategy.run(double, 3.0).item()
6.0)")
      .def_prop_ro("name", &TracedFunction::name)
      .def(
          "concrete",
          [](TracedFunction& of, const nb::args& args, const nb::kwargs& kwargs) {
            return std::const_pointer_cast<ConcreteFunction>(of.concrete(args, kwargs));
          },
          nb::sig("def concrete(self, *args: typing.Any, **kwargs: typing.Any) -> "
                  "ConcreteFunction"),
          "What is recorded for such arguments; a dataset stands for an iterator over it.")
      .def(
          "__call__",
          [](const TracedFunction& f, const nb::args&, const nb::kwargs&) -> nb::object {
            type_error(str("the function \"", f.name(), "\" is recorded: run it by strategy.run(",
                           f.name(), ", ...), or on workers by coordinator.schedule(", f.name(),
                           ", (...)); within another recorded function call ", f.name(),
                           ".__wrapped__"));
          },
          "args"_a, "kwargs"_a,
          nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.NoReturn"))
      .def_prop_ro("__wrapped__", &TracedFunction::callable,
                   nb::sig("def __wrapped__(self) -> collections.abc.Callable[..., typing.Any]"))
      .def("__repr__",
           [](const TracedFunction& f) { return str("<cairn.Function \"", f.name(), "\">"); });
}

}  // namespace cairn::python
