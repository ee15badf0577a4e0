// The columns of files: CsvColumn, RecordField, ExampleFeature, IdxColumn and their kin.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data.h"
#include "data/dataset/example_schema.h"
#include "data/dataset/file_schema.h"
#include "values.h"

namespace cairn::python {

std::vector<std::string> paths_of(nb::handle paths) {
  const nb::object path = nb::module_::import_("os").attr("fspath");
  const auto one = [&](nb::handle each) { return nb::cast<std::string>(path(each)); };
  if (nb::isinstance<nb::str>(paths) || nb::hasattr(paths, "__fspath__")) return {one(paths)};
  if (!nb::hasattr(paths, "__iter__"))
    throw nb::type_error("files are named by a path, or by a list of paths");
  std::vector<std::string> all;
  for (nb::handle each : nb::iter(paths)) all.push_back(one(each));
  return all;
}

std::string path_of(nb::handle path) {
  const std::vector<std::string> all = paths_of(path);
  if (all.size() != 1) throw nb::type_error(str("one path is wanted, not ", all.size()).c_str());
  return all.front();
}

IdRange id_range_of(nb::handle ids) {
  if (ids.is_none()) return {};
  if (nb::isinstance<IdRange>(ids)) return nb::cast<IdRange>(ids);
  if (PyLong_Check(ids.ptr())) return {{nb::cast<std::int64_t>(ids)}};
  return {nb::cast<std::vector<std::int64_t>>(ids)};
}

CsvLabel csv_label_of(nb::handle label) {
  if (nb::isinstance<CsvLabel>(label)) return nb::cast<CsvLabel>(label);
  return {.column = nb::cast<std::string>(label)};
}

namespace {

// A character by its text; none: "".
char character_of(const char* what, const std::string& text) {
  if (text.size() > 1)
    throw InvalidArgumentError(str(what, " is one character of ASCII, not \"", text, "\""));
  return text.empty() ? '\0' : text[0];
}

template <typename T>
std::string dtype_text(const T& of) {
  return std::string(dtype_name(of.dtype));
}

void bind_id_range(nb::module_& m) {
  nb::class_<IdRange>(m, "IdRange", R"(Which whole numbers of a column are ids.

>>> cairn.IdRange([10], padding=-1)
<cairn.IdRange [10], padding -1>)")
      .def(
          "__init__",
          [](IdRange* made, std::vector<std::int64_t> rows, std::optional<std::int64_t> padding) {
            new (made) IdRange{std::move(rows), padding};
          },
          "rows"_a = std::vector<std::int64_t>{}, "padding"_a = nb::none(),
          "Ids lie in [0, rows), by one bound for all values or one for each; `padding` is a "
          "further number that means \"no id\".")
      .def_ro("rows", &IdRange::rows)
      .def_ro("padding", &IdRange::padding)
      .def("__repr__", [](const IdRange& ids) {
        std::string text;
        for (const std::int64_t rows : ids.rows) text += str(text.empty() ? "" : ", ", rows);
        return str("<cairn.IdRange [", text, "]",
                   ids.padding ? str(", padding ", *ids.padding) : "", ">");
      });
}

void bind_csv_column(nb::module_& m) {
  nb::class_<CsvColumn>(m, "CsvColumn", R"(A column of a CSV file or of JSON lines.

>>> cairn.CsvColumn("age", "float32", default_value="0")
<cairn.CsvColumn "age" float32>
>>> cairn.CsvColumn("tags", "string", separator="|")   # "a|b|c" becomes a ragged column
<cairn.CsvColumn "tags" string>)")
      .def(
          "__init__",
          [](CsvColumn* made, std::string name, DTypeLike dtype,
             std::optional<std::string> default_value, bool skip, const std::string& separator,
             bool missing_indicator, std::vector<std::string> unknown, nb::handle ids,
             bool optional, std::string date_format) {
            new (made) CsvColumn{std::move(name),
                                 dtype,
                                 std::move(default_value),
                                 skip,
                                 character_of("separator", separator),
                                 missing_indicator,
                                 std::move(unknown),
                                 id_range_of(ids),
                                 optional,
                                 std::move(date_format)};
          },
          "name"_a, "dtype"_a = "float32", nb::kw_only(), "default_value"_a = nb::none(),
          "skip"_a = false, "separator"_a = "", "missing_indicator"_a = false,
          "unknown"_a = std::vector<std::string>{}, "ids"_a = nb::none(), "optional"_a = false,
          "date_format"_a = "",
          nb::sig("def __init__(self, name: str, dtype: cairn.typing.DTypeLike = 'float32', *, "
                  "default_value: str | None = None, skip: bool = False, separator: str = '', "
                  "missing_indicator: bool = False, unknown: collections.abc.Sequence[str] = (), "
                  "ids: int | collections.abc.Sequence[int] | IdRange | None = None, optional: "
                  "bool = False, date_format: str = '') -> None"),
          "`default_value` stands for a cell that is empty or unknown; `skip` reads past the "
          "column; `ids` bounds whole numbers; `date_format` (\"%Y-%m-%d\") makes int64 seconds "
          "since 1970 of dates.")
      .def_rw("name", &CsvColumn::name)
      .def_prop_ro("dtype", &dtype_text<CsvColumn>)
      .def_rw("default_value", &CsvColumn::default_value)
      .def_rw("skip", &CsvColumn::skip)
      .def_prop_ro("separator",
                   [](const CsvColumn& of) {
                     return of.separator == 0 ? std::string() : std::string(1, of.separator);
                   })
      .def_rw("missing_indicator", &CsvColumn::missing_indicator)
      .def_rw("unknown", &CsvColumn::unknown)
      .def_rw("ids", &CsvColumn::ids)
      .def_rw("optional", &CsvColumn::optional)
      .def_rw("date_format", &CsvColumn::date_format)
      .def("__repr__", [](const CsvColumn& of) {
        return str("<cairn.CsvColumn \"", of.name, "\" ", dtype_name(of.dtype), ">");
      });
}

void bind_csv_label(nb::module_& m) {
  nb::class_<CsvLabel>(m, "CsvLabel", R"(The column of a file that training is to predict.

>>> cairn.CsvLabel("income", positive=[">50K"]).column
'income')")
      .def(
          "__init__",
          [](CsvLabel* made, std::string column, std::vector<std::string> positive,
             std::vector<std::string> negative, bool binary, std::vector<std::string> classes,
             bool skip_unknown) {
            new (made)
                CsvLabel{std::move(column),  std::move(positive), std::move(negative), binary,
                         std::move(classes), skip_unknown};
          },
          "column"_a, nb::kw_only(), "positive"_a = std::vector<std::string>{},
          "negative"_a = std::vector<std::string>{}, "binary"_a = false,
          "classes"_a = std::vector<std::string>{}, "skip_unknown"_a = false,
          "With `positive` texts it is 1 for those, else 0; with `classes`, a text's place among "
          "them; `binary` wants a number in [0, 1].")
      .def_rw("column", &CsvLabel::column)
      .def_rw("positive", &CsvLabel::positive)
      .def_rw("negative", &CsvLabel::negative)
      .def_rw("binary", &CsvLabel::binary)
      .def_rw("classes", &CsvLabel::classes)
      .def_rw("skip_unknown", &CsvLabel::skip_unknown)
      .def("__repr__",
           [](const CsvLabel& of) { return str("<cairn.CsvLabel \"", of.column, "\">"); });
}

void bind_record_field(nb::module_& m) {
  nb::class_<RecordField>(m, "RecordField", R"(A field of flat binary records.

>>> cairn.RecordField("ids", "int32", count=26)
<cairn.RecordField "ids" int32[26]>)")
      .def(
          "__init__",
          [](RecordField* made, std::string name, DTypeLike dtype, std::int64_t count,
             nb::handle ids) {
            new (made) RecordField{std::move(name), dtype, count, id_range_of(ids)};
          },
          "name"_a, "dtype"_a = "float32", "count"_a = 1, "ids"_a = nb::none(),
          nb::sig("def __init__(self, name: str, dtype: cairn.typing.DTypeLike = 'float32', "
                  "count: int = 1, ids: int | collections.abc.Sequence[int] | IdRange | None = "
                  "None) -> None"),
          "One value, or `count` of them in a row, little-endian.")
      .def_rw("name", &RecordField::name)
      .def_prop_ro("dtype", &dtype_text<RecordField>)
      .def_rw("count", &RecordField::count)
      .def_rw("ids", &RecordField::ids)
      .def("__repr__", [](const RecordField& of) {
        return str("<cairn.RecordField \"", of.name, "\" ", dtype_name(of.dtype), "[", of.count,
                   "]>");
      });
}

void bind_example_feature(nb::module_& m) {
  nb::class_<ExampleFeature>(m, "ExampleFeature", R"(A feature of TFRecords of tf.train.Examples.

>>> cairn.ExampleFeature("image", "uint8", shape=(28, 28))
<cairn.ExampleFeature "image" uint8[28, 28]>)")
      .def(
          "__init__",
          [](ExampleFeature* made, std::string name, DTypeLike dtype, ShapeLike shape, bool ragged,
             std::optional<std::string> default_value, nb::handle ids) {
            new (made) ExampleFeature{std::move(name),          dtype,           shape, ragged,
                                      std::move(default_value), id_range_of(ids)};
          },
          "name"_a, "dtype"_a = "float32", nb::kw_only(), "shape"_a = nb::tuple(),
          "ragged"_a = false, "default_value"_a = nb::none(), "ids"_a = nb::none(),
          nb::sig("def __init__(self, name: str, dtype: cairn.typing.DTypeLike = 'float32', *, "
                  "shape: cairn.typing.ShapeLike = (), ragged: bool = False, default_value: str | "
                  "None = None, ids: int | collections.abc.Sequence[int] | IdRange | None = None) "
                  "-> None"),
          "float32 of a float_list, int64 of an int64_list, string of a bytes_list; uint8 is the "
          "bytes of a bytes_list's only value.")
      .def_rw("name", &ExampleFeature::name)
      .def_prop_ro("dtype", &dtype_text<ExampleFeature>)
      .def_prop_ro(
          "shape", [](const ExampleFeature& of) { return tuple_of(of.shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def_rw("ragged", &ExampleFeature::ragged)
      .def_rw("default_value", &ExampleFeature::default_value)
      .def_rw("ids", &ExampleFeature::ids)
      .def("__repr__", [](const ExampleFeature& of) {
        return str("<cairn.ExampleFeature \"", of.name, "\" ", dtype_name(of.dtype),
                   of.ragged ? "[ragged]" : of.shape.to_string(), ">");
      });
}

void bind_idx_column(nb::module_& m) {
  nb::class_<IdxColumn>(m, "IdxColumn", R"(A column whose files are of the IDX format, as MNIST's.

>>> cairn.IdxColumn("image", ["train-images-idx3-ubyte.gz"], "uint8", shape=(28, 28))
<cairn.IdxColumn "image" uint8[28, 28]>)")
      .def(
          "__init__",
          [](IdxColumn* made, std::string name, nb::handle paths, DTypeLike dtype,
             ShapeLike shape) {
            new (made) IdxColumn{std::move(name), paths_of(paths), dtype, shape};
          },
          "name"_a, "paths"_a, "dtype"_a = "uint8", nb::kw_only(), "shape"_a = nb::tuple(),
          nb::sig("def __init__(self, name: str, paths: str | os.PathLike[str] | "
                  "collections.abc.Sequence[str | os.PathLike[str]], dtype: "
                  "cairn.typing.DTypeLike = 'uint8', *, shape: cairn.typing.ShapeLike = ()) -> "
                  "None"))
      .def_rw("name", &IdxColumn::name)
      .def_rw("paths", &IdxColumn::paths)
      .def_prop_ro("dtype", &dtype_text<IdxColumn>)
      .def_prop_ro(
          "shape", [](const IdxColumn& of) { return tuple_of(of.shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def("__repr__", [](const IdxColumn& of) {
        return str("<cairn.IdxColumn \"", of.name, "\" ", dtype_name(of.dtype),
                   of.shape.to_string(), ">");
      });
}

// Columns: a list of CsvColumns, or {"age": "float32", "job": cairn.CsvColumn(...)}.
std::vector<CsvColumn> csv_columns_of(nb::handle columns) {
  std::vector<CsvColumn> all;
  if (nb::isinstance<nb::dict>(columns)) {
    for (auto [name, column] : nb::borrow<nb::dict>(columns)) {
      if (nb::isinstance<CsvColumn>(column)) {
        all.push_back(nb::cast<CsvColumn>(column));
        all.back().name = nb::cast<std::string>(name);
      } else {
        all.push_back({.name = nb::cast<std::string>(name), .dtype = dtype_of(column)});
      }
    }
    return all;
  }
  for (nb::handle each : nb::iter(columns)) all.push_back(nb::cast<CsvColumn>(each));
  return all;
}

void bind_csv_schema(nb::module_& m) {
  nb::class_<CsvSchema>(m, "CsvSchema", R"(How the lines of a file become columns.

>>> schema = cairn.CsvSchema({"age": "float32", "job": str, "income": str}, header=True,
...                          label=cairn.CsvLabel("income", positive=[">50K"]))
>>> [column.name for column in schema.columns]
['age', 'job', 'income'])")
      .def(
          "__init__",
          [](CsvSchema* made, nb::handle columns, nb::handle label, const std::string& delimiter,
             bool header, bool trim, std::string comment, std::string unknown,
             const std::string& quote, std::int64_t cell_lines_max, bool strict,
             std::vector<std::string> where, bool last_takes_rest) {
            new (made) CsvSchema{csv_columns_of(columns),
                                 csv_label_of(label),
                                 character_of("delimiter", delimiter),
                                 header,
                                 trim,
                                 std::move(comment),
                                 std::move(unknown),
                                 character_of("quote", quote),
                                 cell_lines_max,
                                 strict,
                                 std::move(where),
                                 last_takes_rest};
          },
          "columns"_a, nb::kw_only(), "label"_a = "", "delimiter"_a = ",", "header"_a = false,
          "trim"_a = true, "comment"_a = "", "unknown"_a = "", "quote"_a = "\"",
          "cell_lines_max"_a = 1, "strict"_a = false, "where"_a = std::vector<std::string>{},
          "last_takes_rest"_a = false,
          nb::sig("def __init__(self, columns: collections.abc.Mapping[str, "
                  "cairn.typing.DTypeLike | CsvColumn] | collections.abc.Sequence[CsvColumn], *, "
                  "label: str | CsvLabel = '', delimiter: str = ',', header: bool = False, trim: "
                  "bool = True, comment: str = '', unknown: str = '', quote: str = '\"', "
                  "cell_lines_max: int = 1, strict: bool = False, where: "
                  "collections.abc.Sequence[str] = (), last_takes_rest: bool = False) -> None"),
          "With a header, columns are found by name; without, they are in the order of the file. "
          "`unknown` is the text of a cell without a value, `where` a list of conditions such as "
          "'age >= 18'.")
      .def_rw("columns", &CsvSchema::columns)
      .def_rw("label", &CsvSchema::label)
      .def_rw("header", &CsvSchema::header)
      .def_rw("trim", &CsvSchema::trim)
      .def_rw("comment", &CsvSchema::comment)
      .def_rw("unknown", &CsvSchema::unknown)
      .def_rw("cell_lines_max", &CsvSchema::cell_lines_max)
      .def_rw("strict", &CsvSchema::strict)
      .def_rw("where", &CsvSchema::where)
      .def_rw("last_takes_rest", &CsvSchema::last_takes_rest)
      .def_prop_ro("delimiter", [](const CsvSchema& of) { return std::string(1, of.delimiter); })
      .def_prop_ro("quote",
                   [](const CsvSchema& of) {
                     return of.quote == 0 ? std::string() : std::string(1, of.quote);
                   })
      .def("__repr__", [](const CsvSchema& of) {
        return str("<cairn.CsvSchema of ", of.columns.size(), " columns>");
      });
}

}  // namespace

CsvSchema csv_schema_of(nb::handle columns, nb::handle label) {
  CsvSchema schema;
  if (nb::isinstance<CsvSchema>(columns))
    schema = nb::cast<CsvSchema>(columns);
  else
    schema.columns = csv_columns_of(columns);
  if (!label.is_none()) schema.label = csv_label_of(label);
  return schema;
}

void bind_schemas(nb::module_& m) {
  bind_id_range(m);
  bind_csv_column(m);
  bind_csv_label(m);
  bind_csv_schema(m);
  bind_record_field(m);
  bind_example_feature(m);
  bind_idx_column(m);
}

}  // namespace cairn::python
