// cairn.Table: result arrays as a table that pandas, polars, pyarrow and duckdb read by
// __arrow_c_stream__, without a copy where the layout is Arrow's.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "arrow.h"
#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "table_object.h"
#include "values.h"

namespace cairn::python {
namespace {

bool is_list(const Columned& table, std::size_t i) {
  return i + 1 < table.columns.size() &&
         table.columns[i + 1].first == table.columns[i].first + kRowSplits;
}

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "f";
    case DType::kFloat64: return "g";
    case DType::kInt32: return "i";
    case DType::kInt64: return "l";
    case DType::kUint8: return "C";
    case DType::kFloat16: return "e";
    case DType::kBool: return "b";
    default: return "U";
  }
}

// ---- types ----

struct OwnedSchema {
  std::string format, name;
  std::vector<std::unique_ptr<ArrowSchema>> children;
  std::vector<ArrowSchema*> pointers;
};

void release_schema(ArrowSchema* schema) {
  auto* owned = static_cast<OwnedSchema*>(schema->private_data);
  for (const auto& child : owned->children)
    if (child->release != nullptr) child->release(child.get());
  delete owned;
  schema->release = nullptr;
}

OwnedSchema& make_schema(ArrowSchema* out, std::string format, std::string name) {
  auto* owned = new OwnedSchema{std::move(format), std::move(name), {}, {}};
  *out = {};
  out->format = owned->format.c_str();
  out->name = owned->name.c_str();
  out->release = release_schema;
  out->private_data = owned;
  return *owned;
}

ArrowSchema* add_child(ArrowSchema* parent, const std::string& format, const std::string& name) {
  auto* owned = static_cast<OwnedSchema*>(parent->private_data);
  auto child = std::make_unique<ArrowSchema>();
  make_schema(child.get(), format, name);
  owned->pointers.push_back(child.get());
  owned->children.push_back(std::move(child));
  parent->children = owned->pointers.data();
  parent->n_children = static_cast<std::int64_t>(owned->pointers.size());
  return owned->pointers.back();
}

void fill_schema(const Columned& table, ArrowSchema* out) {
  make_schema(out, "+s", "");
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto& [name, values] = table.columns[i];
    ArrowSchema* at = out;
    if (is_list(table, i)) {
      at = add_child(out, "+L", name);
      add_child(at, format_of(values.dtype()), "item");
      ++i;
      continue;
    }
    std::string field = name;
    for (int axis = 1; axis < values.shape().rank(); ++axis) {
      at = add_child(at, str("+w:", values.shape()[axis]), field);
      field = "item";
    }
    add_child(at, format_of(values.dtype()), field);
  }
}

// ---- values ----

struct OwnedArray {
  SharedColumns table;
  Tensor held;              // bits or offsets that were made for Arrow
  std::vector<char> bytes;  // of texts
  std::vector<const void*> buffers;
  std::vector<std::unique_ptr<ArrowArray>> children;
  std::vector<ArrowArray*> pointers;
};

void release_array(ArrowArray* array) {
  auto* owned = static_cast<OwnedArray*>(array->private_data);
  for (const auto& child : owned->children)
    if (child->release != nullptr) child->release(child.get());
  delete owned;
  array->release = nullptr;
}

OwnedArray& make_array(ArrowArray* out, const SharedColumns& table, std::int64_t length) {
  auto* owned = new OwnedArray{table, {}, {}, {nullptr}, {}, {}};
  *out = {};
  out->length = length;
  out->release = release_array;
  out->private_data = owned;
  return *owned;
}

void set_buffers(ArrowArray* array) {
  auto* owned = static_cast<OwnedArray*>(array->private_data);
  array->buffers = owned->buffers.data();
  array->n_buffers = static_cast<std::int64_t>(owned->buffers.size());
}

ArrowArray* add_child(ArrowArray* parent, const SharedColumns& table, std::int64_t length) {
  auto* owned = static_cast<OwnedArray*>(parent->private_data);
  auto child = std::make_unique<ArrowArray>();
  make_array(child.get(), table, length);
  owned->pointers.push_back(child.get());
  owned->children.push_back(std::move(child));
  parent->children = owned->pointers.data();
  parent->n_children = static_cast<std::int64_t>(owned->pointers.size());
  return owned->pointers.back();
}

void fill_texts(OwnedArray& owned, const Tensor& values) {
  const auto texts = values.string_values();
  owned.held = Tensor(DType::kInt64, {static_cast<std::int64_t>(texts.size()) + 1});
  const auto offsets = owned.held.mutable_values<std::int64_t>();
  offsets[0] = 0;
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  owned.bytes.reserve(bytes + 1);  // so that the buffer is never null
  for (std::size_t i = 0; i < texts.size(); ++i) {
    owned.bytes.insert(owned.bytes.end(), texts[i].begin(), texts[i].end());
    offsets[i + 1] = static_cast<std::int64_t>(owned.bytes.size());
  }
  owned.buffers.push_back(owned.held.raw());
  owned.buffers.push_back(owned.bytes.data());
}

void fill_values(ArrowArray* array, const Tensor& values) {
  OwnedArray& owned = *static_cast<OwnedArray*>(array->private_data);
  if (values.dtype() == DType::kString) {
    fill_texts(owned, values);
  } else if (values.dtype() == DType::kBool) {
    owned.held = Tensor::zeros(DType::kUint8, {values.elements() / 8 + 1});
    const auto bits = owned.held.mutable_values<std::uint8_t>();
    const auto flags = values.values<bool>();
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (flags[i]) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << i % 8);
    owned.buffers.push_back(owned.held.raw());
  } else {
    owned.buffers.push_back(values.raw());
  }
  set_buffers(array);
}

void fill_array(const SharedColumns& table, ArrowArray* out) {
  make_array(out, table, table->rows);
  set_buffers(out);
  for (std::size_t i = 0; i < table->columns.size(); ++i) {
    const Tensor& values = table->columns[i].second;
    if (is_list(*table, i)) {
      ArrowArray* list = add_child(out, table, table->rows);
      static_cast<OwnedArray*>(list->private_data)
          ->buffers.push_back(table->columns[++i].second.raw());
      set_buffers(list);
      fill_values(add_child(list, table, values.elements()), values);
      continue;
    }
    ArrowArray* at = out;
    std::int64_t length = table->rows;
    for (int axis = 1; axis < values.shape().rank(); ++axis) {
      at = add_child(at, table, length);
      set_buffers(at);
      length *= values.shape()[axis];
    }
    fill_values(add_child(at, table, length), values);
  }
}

// ---- the stream ----

struct OwnedStream {
  SharedColumns table;
  bool given = false;
  std::string error = {};
};

template <typename F>
int guarded(ArrowArrayStream* stream, F&& fill) {
  auto* owned = static_cast<OwnedStream*>(stream->private_data);
  try {
    fill(*owned);
    return 0;
  } catch (const std::exception& error) {
    owned->error = error.what();
    return ENOMEM;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return guarded(stream, [&](OwnedStream& owned) { fill_schema(*owned.table, out); });
}
int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  return guarded(stream, [&](OwnedStream& owned) {
    *out = {};
    if (!std::exchange(owned.given, true)) fill_array(owned.table, out);
  });
}
const char* get_last_error(ArrowArrayStream* stream) {
  return static_cast<OwnedStream*>(stream->private_data)->error.c_str();
}
void release_stream(ArrowArrayStream* stream) {
  delete static_cast<OwnedStream*>(stream->private_data);
  stream->release = nullptr;
}

void release_capsule(PyObject* capsule) {
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
  if (stream == nullptr) return PyErr_Clear();
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

nb::object capsule_of(const SharedColumns& table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  *stream = {get_schema, get_next, get_last_error, release_stream, new OwnedStream{table}};
  PyObject* capsule = PyCapsule_New(stream.get(), "arrow_array_stream", release_capsule);
  if (capsule == nullptr) {
    stream->release(stream.get());
    nb::raise_python_error();
  }
  stream.release();
  return nb::steal(capsule);
}

// ---- cairn.Table ----

std::vector<std::string> names_of(const Columned& table) {
  std::vector<std::string> all;
  for (const auto& [name, values] : table.columns)
    if (!name.ends_with(kRowSplits)) all.push_back(name);
  return all;
}

// Where a column stands.
//   Errors  InvalidArgument: there is none.
std::size_t place_of(const Columned& table, const std::string& name) {
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].first == name) return i;
  const std::string near = nearest_name(name, names_of(table));
  throw InvalidArgumentError(str("the table has no column \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

nb::object column_of(const Columned& table, const std::string& name) {
  const std::size_t i = place_of(table, name);
  nb::object values = numpy_of(table.columns[i].second);
  if (!is_list(table, i)) return values;
  return nb::module_::import_("cairn.data")
      .attr("Ragged")(values, numpy_of(table.columns[i + 1].second));
}

// These columns of a table, and more behind them.
Table chosen_of(const Table& table, const std::vector<std::string>& names, nb::handle more) {
  Columns columns;
  for (const std::string& name : names) {
    const std::size_t i = place_of(*table.shared, name);
    columns.push_back(table.shared->columns[i]);
    if (is_list(*table.shared, i)) columns.push_back(table.shared->columns[i + 1]);
  }
  for (auto& each : columns_of_mapping(more, false)) columns.push_back(std::move(each));
  return {side_by_side(std::move(columns))};
}

nb::dict types_of(const Columned& table) {
  nb::dict all;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto& [name, values] = table.columns[i];
    if (name.ends_with(kRowSplits)) continue;
    std::string type(dtype_name(values.dtype()));
    if (is_list(table, i)) type = str("list of ", type);
    if (values.shape().rank() > 1) type += values.shape().without_front().to_string();
    all[name.c_str()] = type;
  }
  return all;
}

}  // namespace

SharedColumns side_by_side(Columns columns) {
  auto table = std::make_shared<Columned>();
  for (auto& [name, values] : columns) {
    if (values.dtype() == DType::kBfloat16) values = cast(Array(values), DType::kFloat32).eval();
    table->columns.emplace_back(name, values);
  }
  bool first = true;
  for (std::size_t i = 0; i < table->columns.size(); ++i) {
    const auto& [name, values] = table->columns[i];
    const bool list = is_list(*table, i);
    if (!list && values.shape().rank() == 0)
      throw InvalidArgumentError(str("column \"", name,
                                     "\" is a single value: a table has one "
                                     "for each row"));
    const std::int64_t rows =
        list ? table->columns[i + 1].second.elements() - 1 : values.shape()[0];
    if (std::exchange(first, false)) table->rows = rows;
    if (rows != table->rows)
      throw InvalidArgumentError(str("column \"", name, "\" has ", rows, " rows, and \"",
                                     table->columns[0].first, "\" has ", table->rows));
    if (list) ++i;
  }
  return table;
}

void bind_arrow_out(nb::module_& m) {
  nb::class_<Table>(m, "Table", R"(Columns side by side, which other libraries read without a copy.

Whatever takes an object with ``__arrow_c_stream__`` takes it: ``polars.DataFrame(table)``,
``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)``, duckdb's queries.

>>> table = cairn.Table({"id": np.arange(3), "score": np.array([0.5, 0.1, 0.4])})
>>> table.columns, len(table)
(['id', 'score'], 3)
>>> table["score"]
array([0.5, 0.1, 0.4]))")
      .def(
          "__init__",
          [](Table* made, nb::handle columns) {
            new (made) Table{side_by_side(columns_of_mapping(columns, false))};
          },
          "columns"_a,
          nb::sig("def __init__(self, columns: collections.abc.Mapping[str, "
                  "cairn.typing.ArrayLike]) -> None"))
      .def_prop_ro(
          "columns", [](const Table& table) { return names_of(*table.shared); },
          "The names of the columns, in order.")
      .def_prop_ro(
          "dtypes", [](const Table& table) { return types_of(*table.shared); },
          nb::sig("def dtypes(self) -> dict[str, str]"),
          "The columns' types by name: \"float32\", \"string\", \"list of int64\".")
      .def("_chosen", &chosen_of, "names"_a, "more"_a,
           nb::sig("def _chosen(self, names: collections.abc.Sequence[str], more: "
                   "collections.abc.Mapping[str, cairn.typing.ArrayLike]) -> Table"))
      .def("__len__", [](const Table& table) { return table.shared->rows; })
      .def(
          "__getitem__",
          [](const Table& table, const std::string& name) {
            return column_of(*table.shared, name);
          },
          "name"_a, nb::sig("def __getitem__(self, name: str) -> typing.Any"),
          "A column as a NumPy array, or, if it is ragged, as cairn.Ragged.")
      .def(
          "__arrow_c_stream__",
          [](const Table& table, nb::handle) { return capsule_of(table.shared); },
          "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: typing.Any = None) -> "
                  "typing.Any"))
      .def("__repr__", [](const Table& table) {
        std::string text;
        for (const auto& [name, values] : table.shared->columns)
          if (!name.ends_with(kRowSplits))
            text += str(text.empty() ? "" : ", ", name, " ", dtype_name(values.dtype()));
        return str("<cairn.Table of ", table.shared->rows, " rows: ", text, ">");
      });
  m.def("_is_table", &is_table, "object"_a, nb::sig("def _is_table(object: typing.Any) -> bool"));
  m.def(
      "_read_table",
      [](nb::handle object, std::string complete, std::vector<std::string> without) {
        TableFacts facts;
        const TableOptions options{.nulls_are_missing = true,
                                   .complete = std::move(complete),
                                   .without = std::move(without)};
        Columns columns = columns_of_table(object, options, &facts);
        return nb::make_tuple(Table{side_by_side(std::move(columns))}, facts.names,
                              facts.categories);
      },
      "table"_a, "complete"_a, "without"_a,
      nb::sig("def _read_table(table: typing.Any, complete: str, without: "
              "collections.abc.Sequence[str]) -> tuple[Table, list[str], list[str]]"));
}

}  // namespace cairn::python
