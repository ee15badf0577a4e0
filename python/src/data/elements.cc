// Elements of datasets: their columns' types, their values as NumPy's, and the iterator that reads
// them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include "core/base/processors.h"
#include "data.h"
#include "data/dataset/dataset_iterator.h"
#include "data/dataset/stage_spec.h"
#include "elements.h"
#include "forks.h"
#include "html.h"
#include "values.h"

namespace cairn::python {
namespace {

bool is_ragged(const ElementSpec& spec, std::size_t i) {
  return i + 1 < spec.columns.size() &&
         spec.columns[i + 1].name == spec.columns[i].name + kRowSplits;
}

nb::object ragged_class() { return nb::module_::import_("cairn.data").attr("Ragged"); }

// A column as a program names it.
struct PythonColumn {
  ColumnSpec spec;
  bool ragged = false;
};

std::vector<PythonColumn> columns_of_spec(const ElementSpec& spec) {
  std::vector<PythonColumn> all;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const bool ragged = is_ragged(spec, i);
    all.push_back({spec.columns[i], ragged});
    if (ragged) ++i;
  }
  return all;
}

std::string column_text(const PythonColumn& column) {
  return str(column.spec.name, " ",
             column.ragged ? str(dtype_name(column.spec.type.dtype), "[ragged]")
                           : column.spec.type.to_string());
}

Shape sizes_of(const std::string& name, const Shape& shape) {
  for (const std::int64_t size : shape.dims())
    if (size < 0 && size != Shape::kUnknown)
      throw InvalidArgumentError(
          str("column \"", name, "\": a size is at least 0, or None, not ", size));
  return shape;
}

PythonColumn column_of(const std::string& name, nb::handle type) {
  if (nb::isinstance<PythonColumn>(type)) {
    PythonColumn column = nb::cast<PythonColumn>(type);
    column.spec.name = name;
    return column;
  }
  if (nb::isinstance<nb::tuple>(type) && nb::len(type) == 2)
    return {{name, {dtype_of(type[0]), sizes_of(name, shape_of(type[1]))}}};
  return {{name, {dtype_of(type), Shape{}}}};
}

void add_column(ElementSpec& spec, const PythonColumn& column) {
  if (column.ragged)
    add_ragged(spec, column.spec.name, column.spec.type.dtype);
  else
    spec.columns.push_back(column.spec);
}

}  // namespace

ElementSpec element_spec_of(nb::handle columns, const std::string& label) {
  ElementSpec spec;
  if (nb::isinstance<ElementSpec>(columns)) {
    spec = nb::cast<ElementSpec>(columns);
  } else if (nb::isinstance<nb::dict>(columns)) {
    for (auto [name, type] : nb::borrow<nb::dict>(columns))
      add_column(spec, column_of(nb::cast<std::string>(name), type));
  } else {
    for (nb::handle each : nb::iter(columns)) add_column(spec, nb::cast<PythonColumn>(each));
  }
  if (!label.empty()) spec.label = label;
  return spec;
}

nb::dict columns_of_element(const ElementSpec& spec, const Element& element) {
  nb::dict made;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const nb::str name(spec.columns[i].name.c_str(), spec.columns[i].name.size());
    nb::object values = numpy_of(element[i]);
    if (is_ragged(spec, i))
      made[name] = ragged_class()(values, numpy_of(element[++i]));
    else
      made[name] = values;
  }
  return made;
}

namespace {

// A value in the type that was announced: Python's numbers and NumPy's defaults are taken for it
// where nothing is lost.
Tensor value_of(const ColumnSpec& column, nb::handle value) {
  Tensor tensor = tensor_of(value);
  const DType from = tensor.dtype(), to = column.type.dtype;
  if (from == to || from == DType::kString || to == DType::kString) return tensor;
  const auto is_number = [](nb::handle each) {
    return PyLong_Check(each.ptr()) || PyFloat_Check(each.ptr()) ||
           nb::isinstance<nb::list>(each) || nb::isinstance<nb::tuple>(each);
  };
  const bool to_real = to == DType::kFloat32 || to == DType::kFloat64 || to == DType::kFloat16;
  const bool from_whole = is_whole(from) && from != DType::kBool;
  if (!is_number(value) && !(to_real && from_whole) && !(from == DType::kFloat64 && to_real))
    return tensor;
  if (!to_real && !from_whole) return tensor;
  const Tensor made = cast(Array(tensor), to).eval();
  if (to_real) return made;
  const Tensor back = cast(Array(made), from).eval();
  return std::equal(back.raw(), back.raw() + back.bytes(), tensor.raw()) ? made : tensor;
}

nb::object part_of(nb::handle given, const ElementSpec& spec, std::size_t place,
                   const std::string& name) {
  if (nb::isinstance<nb::dict>(given)) {
    const nb::dict all = nb::borrow<nb::dict>(given);
    if (!all.contains(name.c_str()))
      throw InvalidArgumentError(
          str("from_generator(): an element lacks the column \"", name, "\""));
    return nb::object(all[name.c_str()]);
  }
  const std::size_t wanted = columns_of_spec(spec).size();
  if (nb::isinstance<nb::tuple>(given) && nb::len(given) == wanted &&
      !nb::hasattr(given, "row_splits"))
    return nb::object(given[place]);
  if (wanted == 1) return nb::borrow(given);
  throw InvalidArgumentError(
      str("from_generator(): an element is a dict by column, or a tuple of ", wanted, " values"));
}

}  // namespace

Element element_of(const ElementSpec& spec, nb::handle given) {
  Element element;
  std::size_t place = 0;
  for (std::size_t i = 0; i < spec.columns.size(); ++i, ++place) {
    const ColumnSpec& column = spec.columns[i];
    const nb::object value = part_of(given, spec, place, column.name);
    if (!is_ragged(spec, i)) {
      element.push_back(value_of(column, value));
      continue;
    }
    Tensor values =
        nb::hasattr(value, "__len__") && nb::len(value) == 0 && column.type.dtype != DType::kString
            ? Tensor::zeros(column.type.dtype, {0})
            : value_of(column, value);
    if (values.elements() == 0 && column.type.dtype == DType::kString)
      values = Tensor::strings({0}, std::vector<std::string>{});
    const std::int64_t splits[] = {0, values.elements()};
    element.push_back(std::move(values));
    element.push_back(Tensor::of<std::int64_t>({2}, splits));
    ++i;
  }
  return element;
}

// ---- the iterator ----

struct OpenIterators {
  std::mutex mutex;
  std::vector<std::weak_ptr<ElementIterator::Open>> all;
};

namespace {

OpenIterators& open_iterators() {
  static OpenIterators& only = *new OpenIterators;  // iterators may outlive the module
  return only;
}

// Whether a stage reads ahead, for which the iterator has threads.
bool reads_ahead(const std::shared_ptr<const StageSpec>& spec) {
  if (spec == nullptr) return false;
  if (std::holds_alternative<PrefetchSpec>(spec->kind)) return true;
  if (const auto* map = std::get_if<MapSpec>(&spec->kind); map != nullptr && map->calls != 1)
    return true;
  return reads_ahead(spec->input) || std::ranges::any_of(spec->others, reads_ahead);
}

}  // namespace

ElementIterator::ElementIterator(const Dataset& dataset, const IteratorState& state,
                                 OpenOptions options)
    : spec_(dataset.element_spec()) {
  count_living(1);
  if (reads_ahead(dataset.last())) {
    constexpr std::int64_t kThreadsMax = 16;
    open_->threads = make_thread_offload(
        static_cast<std::size_t>(std::clamp<std::int64_t>(usable_processors(), 2, kThreadsMax)));
    options.offload = open_->threads.get();
  }
  open_->iterator = cairn::open(dataset, state, options);
  auto& known = open_iterators();
  const std::lock_guard hold(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.expired(); });
  known.all.push_back(open_);
}

ElementIterator::~ElementIterator() = default;

ElementIterator::Open::~Open() {
  close();
  if (in_own_process()) count_living(-1);
}

// Threads that read ahead may run a generator of Python's, which needs the GIL. While another
// thread reads it is left alone.
void ElementIterator::Open::close() {
  if (!in_own_process()) {
    end_here(iterator);
    end_here(threads);
    return;
  }
  std::optional<WithoutGil> released;
  if (has_gil()) released.emplace();
  const std::unique_lock hold(mutex, std::try_to_lock);
  if (!hold.owns_lock()) return;
  iterator.reset();
  threads.reset();
}

DatasetIterator& ElementIterator::Open::get() const {
  if (iterator == nullptr)
    throw FailedPreconditionError("the iterator has been closed, since the program ends");
  return *iterator;
}

void close_iterators() {
  std::vector<std::shared_ptr<ElementIterator::Open>> all;
  {
    const std::lock_guard hold(open_iterators().mutex);
    for (const auto& each : open_iterators().all)
      if (auto found = each.lock()) all.push_back(std::move(found));
  }
  for (const auto& each : all) each->close();
}

namespace {

void bind_specs(nb::module_& m) {
  nb::class_<PythonColumn>(m, "ColumnSpec", R"(A column of a dataset's elements: its name and type.

>>> cairn.ColumnSpec("image", "uint8", (28, 28))
<cairn.ColumnSpec image uint8[28, 28]>)")
      .def(
          "__init__",
          [](PythonColumn* made, std::string name, DTypeLike dtype, ShapeLike shape, bool ragged) {
            new (made) PythonColumn{{name, {dtype, sizes_of(name, shape)}}, ragged};
          },
          "name"_a, "dtype"_a = "float32", "shape"_a = nb::tuple(), "ragged"_a = false,
          nb::sig("def __init__(self, name: str, dtype: cairn.typing.DTypeLike = 'float32', shape: "
                  "cairn.typing.ShapeLike = (), ragged: bool = False) -> None"),
          "`ragged`: each example has any number of values.")
      .def_prop_ro("name", [](const PythonColumn& of) { return of.spec.name; })
      .def_prop_ro(
          "dtype",
          [](const PythonColumn& of) { return std::string(dtype_name(of.spec.type.dtype)); })
      .def_prop_ro(
          "shape", [](const PythonColumn& of) { return tuple_of(of.spec.type.shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def_ro("ragged", &PythonColumn::ragged)
      .def("__repr__",
           [](const PythonColumn& of) { return "<cairn.ColumnSpec " + column_text(of) + ">"; });
  nb::class_<ElementSpec>(m, "ElementSpec", R"(The columns of a dataset's elements, in order.

>>> spec = cairn.ElementSpec({"x": ("float32", (3,)), "y": "int64"}, label="y")
>>> spec["x"].shape, spec.label
((3,), 'y'))")
      .def(
          "__init__",
          [](ElementSpec* made, nb::handle columns, const std::string& label) {
            new (made) ElementSpec(element_spec_of(columns, label));
          },
          "columns"_a, "label"_a = "",
          nb::sig("def __init__(self, columns: collections.abc.Mapping[str, "
                  "cairn.typing.DTypeLike | tuple[cairn.typing.DTypeLike, cairn.typing.ShapeLike] "
                  "| ColumnSpec] | collections.abc.Sequence[ColumnSpec], label: str = '') -> None"))
      .def_prop_ro("columns", &columns_of_spec)
      .def_ro("label", &ElementSpec::label, "The column that is the label; empty: none.")
      .def("__len__", [](const ElementSpec& spec) { return columns_of_spec(spec).size(); })
      .def(
          "__iter__",
          [](const ElementSpec& spec) {
            return nb::cast(columns_of_spec(spec)).attr("__iter__")();
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[ColumnSpec]"))
      .def("__getitem__",
           [](const ElementSpec& spec, const std::string& name) {
             const std::size_t place = spec.find(name);
             return PythonColumn{spec.columns[place], is_ragged(spec, place)};
           })
      .def(
          "__eq__", [](const ElementSpec& a, const ElementSpec& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__",
           [](const ElementSpec& spec) { return "<cairn.ElementSpec " + text_of(spec) + ">"; });
}

}  // namespace

std::string text_of(const ElementSpec& spec) {
  std::string text;
  for (const PythonColumn& column : columns_of_spec(spec)) {
    text += str(text.empty() ? "" : ", ", column_text(column));
    if (column.spec.name == spec.label) text += ", the label";
  }
  return text;
}

std::string html_of(const ElementSpec& spec, const std::string& title) {
  HtmlRows rows;
  for (const PythonColumn& column : columns_of_spec(spec))
    rows.push_back({str(column.spec.name, column.spec.name == spec.label ? " (label)" : ""),
                    std::string(dtype_name(column.spec.type.dtype)),
                    column.ragged ? "ragged" : column.spec.type.shape.to_string()});
  return html_table({"column", "type", "shape"}, rows, title);
}

void bind_elements(nb::module_& m) {
  bind_specs(m);
  nb::class_<ElementIterator>(m, "DatasetIterator", R"(Reads a dataset, and can say where it stands.

>>> iterator = iter(cairn.Dataset.range(5))
>>> next(iterator)["value"], iterator.ordinal
(array(0), 1)
>>> iterator.skip_to(4)
>>> next(iterator)["value"]
array(4))")
      .def(
          "__next__",
          [](ElementIterator& of) {
            const std::optional<Element> element =
                of.with([](DatasetIterator& it) { return it.next(); });
            if (!element) throw nb::stop_iteration();
            return columns_of_element(of.element_spec(), *element);
          },
          nb::sig("def __next__(self) -> dict[str, typing.Any]"))
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> DatasetIterator"))
      .def_prop_ro(
          "ordinal",
          [](ElementIterator& of) {
            return of.with([](DatasetIterator& it) { return it.ordinal(); });
          },
          "How many elements it has handed out since the beginning of the data.")
      .def_prop_ro(
          "state",
          [](ElementIterator& of) {
            const auto bytes = of.with([](DatasetIterator& it) { return it.state().bytes; });
            return nb::bytes(bytes.data(), bytes.size());
          },
          "Where it stands: dataset.open(state) goes on from there, in any process.")
      .def(
          "skip_to",
          [](ElementIterator& of, std::int64_t ordinal) {
            of.with([&](DatasetIterator& it) { it.skip_to(ordinal); });
          },
          "ordinal"_a, "Stands before this element, or at the end if there are fewer.")
      .def_prop_ro(
          "reads_once",
          [](ElementIterator& of) {
            return of.with([](DatasetIterator& it) { return it.reads_once(); });
          },
          "Whether its elements do not come again.")
      .def_prop_ro(
          "skipped",
          [](ElementIterator& of) {
            return of.with([](DatasetIterator& it) { return it.skipped(); });
          },
          "How many lines or records were left out so far, with on_error=\"skip\".")
      .def_prop_ro("element_spec", [](const ElementIterator& of) { return of.element_spec(); });
  m.def("_close_iterators", &close_iterators);
}

}  // namespace cairn::python
