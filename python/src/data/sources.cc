// Where data comes from: the static methods of cairn.Dataset.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cctype>

#include "data.h"
#include "data/dataset/example_schema.h"
#include "data/dataset/file_schema.h"
#include "data/format/criteo_like.h"
#include "data/format/json/json_lines.h"
#include "refusing.h"
#include "service/consumer/distribute.h"
#include "tables.h"
#include "values.h"

namespace cairn::python {
namespace {

#define CAIRN_PATHS \
  "paths: str | os.PathLike[str] | collections.abc.Sequence[str | os.PathLike[str]]"
#define CAIRN_CSV_COLUMNS                                                                    \
  "columns: CsvSchema | collections.abc.Mapping[str, cairn.typing.DTypeLike | CsvColumn] | " \
  "collections.abc.Sequence[CsvColumn]"
#define CAIRN_SLICES                                                                  \
  "data: collections.abc.Mapping[str, cairn.typing.ArrayLike | cairn.data.Ragged] | " \
  "tuple[typing.Any, ...] | cairn.typing.ArrayLike"

// ---- memory ----

void bind_memory(nb::class_<Dataset>& dataset) {
  dataset
      .def_static(
          "from_tensor_slices",
          [](nb::handle data, std::string label, bool copy) {
            Columns columns = columns_of_slices(data, &label, !copy);
            return released([&] { return dataset_of_columns(std::move(columns), label); });
          },
          "data"_a, "label"_a = "", "copy"_a = true,
          nb::sig("def from_tensor_slices(" CAIRN_SLICES
                  ", label: str = '', copy: bool = True) -> Dataset"),
          R"(Rows of arrays of the same length: a dict by column, (x, y), or an array "x".

Arrays that may be written to are copied, unless `copy` is False.

>>> x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
>>> cairn.Dataset.from_tensor_slices((x, y))
<cairn.Dataset: x float64[2], y int64[], the label>)")
      .def_static(
          "from_tensors",
          [](nb::handle data, std::string label) {
            return Dataset::from_tensors(columns_of_slices(data, &label, false), label);
          },
          "data"_a, "label"_a = "",
          nb::sig("def from_tensors(" CAIRN_SLICES ", label: str = '') -> Dataset"),
          "One element of these columns.\n\n"
          ">>> len(list(cairn.Dataset.from_tensors({\"x\": np.zeros(3)})))\n1")
      .def_static(
          "from_table",
          [](nb::handle table, const std::string& label,
             std::optional<std::vector<std::string>> columns, nb::handle defaults, bool copy) {
            TableOptions options{std::move(columns), null_values_of(defaults), copy};
            if (options.columns && !label.empty() &&
                std::ranges::find(*options.columns, label) == options.columns->end())
              options.columns->push_back(label);
            Columns made = columns_of_table(table, options);
            return released([&] { return dataset_of_columns(std::move(made), label); });
          },
          "table"_a, "label"_a = "", nb::kw_only(), "columns"_a = nb::none(),
          "defaults"_a = nb::none(), "copy"_a = true,
          nb::sig("def from_table(table: typing.Any, label: str = '', *, columns: "
                  "collections.abc.Sequence[str] | None = None, defaults: "
                  "collections.abc.Mapping[str, typing.Any] | None = None, copy: bool = True) -> "
                  "Dataset"),
          R"(The rows of a table of pandas, polars, pyarrow, duckdb, or of whatever else has
``__arrow_c_stream__``. `defaults` has for columns with missing values what stands for them.

>>> table = cairn.Table({"age": np.array([31, 44]), "city": np.array(["Ulm", "Bonn"])})
>>> cairn.Dataset.from_table(table, label="age")
<cairn.Dataset: age int64[], the label, city string[]>)")
      .def_static("range", &Dataset::range, "n"_a,
                  "0, 1, ... n - 1, in the column \"value\".\n\n"
                  ">>> [int(x[\"value\"]) for x in cairn.Dataset.range(3)]\n[0, 1, 2]");
}

// ---- a generator of Python's ----

ElementGenerator begun(const SharedReference& function, const ElementSpec& spec) {
  const Acquired here;
  const nb::object given = nb::borrow(function->get())();
  if (!nb::hasattr(given, "__iter__"))
    type_error(str("from_generator(): the function that begins a pass returned ", described(given),
                   ", which cannot be looped over"));
  const SharedReference iterator = share(given.attr("__iter__")());
  return [iterator, spec]() -> std::optional<Element> {
    const Acquired here;
    const nb::object next = nb::steal(PyIter_Next(iterator->get().ptr()));
    if (next.is_valid()) return element_of(spec, next);
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    return {};
  };
}

void bind_generator(nb::class_<Dataset>& dataset) {
  dataset.def_static(
      "from_generator",
      [](nb::object generator, nb::handle element, const std::string& label) {
        if (PyCallable_Check(generator.ptr()) == 0)
          type_error(str("from_generator() takes a function that begins a pass, such as a ",
                         "generator function, not ", described(generator)));
        const ElementSpec spec = element_spec_of(element, label);
        return Dataset::from_generator(
            [function = share(generator), spec] { return begun(function, spec); }, spec);
      },
      "generator"_a, "element"_a, "label"_a = "",
      nb::sig("def from_generator(generator: collections.abc.Callable[[], "
              "collections.abc.Iterable[typing.Any]], element: ElementSpec | "
              "collections.abc.Mapping[str, cairn.typing.DTypeLike | "
              "tuple[cairn.typing.DTypeLike, cairn.typing.ShapeLike] | ColumnSpec] | "
              "collections.abc.Sequence[ColumnSpec], label: str = '') -> Dataset"),
      R"(Elements that Python makes, in this process alone: not under parameter servers.

`generator` is called for each pass; it yields dicts by column, or tuples in the order of `element`.

>>> def squares():
...     for i in range(3):
...         yield {"x": i, "y": i * i}
>>> data = cairn.Dataset.from_generator(squares, {"x": "int64", "y": "float32"}, label="y")
>>> next(iter(data.batch(3)))["y"]
array([0., 1., 4.], dtype=float32))");
}

// ---- text ----

CsvOptions csv_options(const std::string& on_error, const std::string& empty_files) {
  return {on_error_of(on_error), empty_files_of(empty_files)};
}
FileOptions file_options(const std::string& on_error, const std::string& empty_files) {
  return {on_error_of(on_error), empty_files_of(empty_files)};
}

void bind_text_files(nb::class_<Dataset>& dataset) {
  dataset
      .def_static(
          "csv",
          [](nb::handle paths, nb::handle columns, nb::handle label, std::optional<bool> header,
             const std::string& on_error, const std::string& empty_files) {
            CsvSchema schema = csv_schema_of(columns, label);
            if (header) schema.header = *header;
            return Dataset::csv(paths_of(paths), std::move(schema),
                                csv_options(on_error, empty_files));
          },
          "paths"_a, "columns"_a, nb::kw_only(), "label"_a = nb::none(), "header"_a = nb::none(),
          "on_error"_a = "error", "empty_files"_a = "error",
          nb::sig("def csv(" CAIRN_PATHS ", " CAIRN_CSV_COLUMNS
                  ", *, label: str | CsvLabel | None = None, header: bool | None = None, "
                  "on_error: str = 'error', empty_files: str = 'error') -> Dataset"),
          R"(Lines of text, file after file, compressed by gzip or zstd or not.

A line that does not fit is an error, or, with on_error="skip", left out and counted.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/people.csv"
>>> _ = open(path, "w").write("age,city\n31,Ulm\n44,Bonn\n")
>>> data = cairn.Dataset.csv(path, {"age": "float32", "city": str}, header=True)
>>> [row["city"].item() for row in data]
['Ulm', 'Bonn'])")
      .def_static(
          "json_lines",
          [](nb::handle paths, nb::handle columns, nb::handle label, const std::string& on_error,
             const std::string& empty_files) {
            return json_lines(paths_of(paths), csv_schema_of(columns, label),
                              csv_options(on_error, empty_files));
          },
          "paths"_a, "columns"_a, nb::kw_only(), "label"_a = nb::none(), "on_error"_a = "error",
          "empty_files"_a = "error",
          nb::sig("def json_lines(" CAIRN_PATHS ", " CAIRN_CSV_COLUMNS
                  ", *, label: str | CsvLabel | None = None, on_error: str = 'error', "
                  "empty_files: str = 'error') -> Dataset"),
          "A JSON object on each line, whose values are columns by name; one with a `separator` "
          "holds lists.\n\n"
          ">>> cairn.Dataset.json_lines(\"clicks.jsonl\", {\"user\": \"int64\", \"query\": str}, "
          "label=\"user\")\n"
          "<cairn.Dataset: user int64[], the label, query string[]>");
}

void bind_other_text_files(nb::class_<Dataset>& dataset) {
  dataset
      .def_static(
          "text_lines",
          [](nb::handle paths, std::string column, bool skip_blank, std::int64_t line_bytes_max,
             const std::string& on_error, const std::string& empty_files) {
            return Dataset::text_lines(paths_of(paths),
                                       {std::move(column), skip_blank, line_bytes_max,
                                        on_error_of(on_error), empty_files_of(empty_files)});
          },
          "paths"_a, nb::kw_only(), "column"_a = "line", "skip_blank"_a = false,
          "line_bytes_max"_a = 16 << 20, "on_error"_a = "error", "empty_files"_a = "error",
          nb::sig("def text_lines(" CAIRN_PATHS
                  ", *, column: str = 'line', skip_blank: bool = False, line_bytes_max: int = "
                  "16777216, on_error: str = 'error', empty_files: str = 'error') -> Dataset"),
          "Each line as it is, without its end.\n\n"
          ">>> cairn.Dataset.text_lines([\"a.txt\", \"b.txt\"], skip_blank=True)\n"
          "<cairn.Dataset: line string[]>")
      .def_static(
          "libsvm",
          [](nb::handle paths, std::string ids, std::string values, nb::handle label,
             std::string qid, bool zero_based, std::int64_t dimension, const std::string& on_error,
             const std::string& empty_files) {
            LibsvmSchema schema{std::move(ids), std::move(values), csv_label_of(label),
                                std::move(qid), zero_based,        dimension};
            return Dataset::libsvm(paths_of(paths), std::move(schema),
                                   file_options(on_error, empty_files));
          },
          "paths"_a, nb::kw_only(), "ids"_a = "ids", "values"_a = "values", "label"_a = "label",
          "qid"_a = "", "zero_based"_a = false, "dimension"_a = 0, "on_error"_a = "error",
          "empty_files"_a = "error",
          nb::sig("def libsvm(" CAIRN_PATHS
                  ", *, ids: str = 'ids', values: str = 'values', label: str | CsvLabel = 'label', "
                  "qid: str = '', zero_based: bool = False, dimension: int = 0, on_error: str = "
                  "'error', empty_files: str = 'error') -> Dataset"),
          "Lines \"label index:value index:value\": ragged ids and values.\n\n"
          ">>> cairn.Dataset.libsvm(\"a9a.svm\", label=cairn.CsvLabel(\"label\", "
          "positive=[\"+1\"]))\n"
          "<cairn.Dataset: label float32[], the label, ids int64[ragged], values float32[ragged]>")
      .def_static(
          "criteo",
          [](nb::handle paths, const std::string& on_error) {
            return Dataset::csv(paths_of(paths), criteo_tsv_schema(),
                                csv_options(on_error, "error"));
          },
          "paths"_a, nb::kw_only(), "on_error"_a = "error",
          nb::sig("def criteo(" CAIRN_PATHS ", *, on_error: str = 'error') -> Dataset"),
          "Criteo's click logs: a label, counts I1 to I13, texts C1 to C26, separated by tabs.\n\n"
          ">>> len(cairn.Dataset.criteo(\"day_0.gz\").element_spec)\n"
          "40")
      .def_static(
          "criteo_records",
          [](nb::handle paths) {
            return Dataset::records(paths_of(paths), criteo_record_schema());
          },
          "paths"_a, nb::sig("def criteo_records(" CAIRN_PATHS ") -> Dataset"),
          "Records as CriteoLike.write_records() writes them: a label, \"dense\" and \"ids\".\n\n"
          ">>> cairn.Dataset.criteo_records(\"train.bin\").element_spec[\"ids\"].shape\n(26,)");
}

// ---- binary files ----

void bind_binary_files(nb::class_<Dataset>& dataset) {
  dataset
      .def_static(
          "records",
          [](nb::handle paths, std::vector<RecordField> fields, std::string label,
             bool binary_label, std::int64_t label_classes, bool finite,
             const std::string& on_error, const std::string& empty_files) {
            RecordSchema schema{std::move(fields), std::move(label), binary_label, label_classes,
                                finite};
            return Dataset::records(paths_of(paths), std::move(schema),
                                    file_options(on_error, empty_files));
          },
          "paths"_a, "fields"_a, nb::kw_only(), "label"_a = "", "binary_label"_a = false,
          "label_classes"_a = 0, "finite"_a = true, "on_error"_a = "error",
          "empty_files"_a = "error",
          nb::sig("def records(" CAIRN_PATHS
                  ", fields: collections.abc.Sequence[RecordField], *, label: str = '', "
                  "binary_label: bool = False, label_classes: int = 0, finite: bool = True, "
                  "on_error: str = 'error', empty_files: str = 'error') -> Dataset"),
          R"(Flat binary records of equal size, fields side by side.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/points.bin"
>>> np.arange(6, dtype="<f4").tofile(path)
>>> data = cairn.Dataset.records(path, [cairn.RecordField("x", "float32", count=2)])
>>> data.cardinality()
3)")
      .def_static(
          "tfrecords",
          [](nb::handle paths, std::vector<ExampleFeature> features, std::string label,
             bool binary_label, std::int64_t label_classes, bool finite,
             std::int64_t record_bytes_max, const std::string& on_error,
             const std::string& empty_files) {
            ExampleSchema schema{std::move(features), std::move(label), binary_label, label_classes,
                                 finite};
            return Dataset::tfrecords(
                paths_of(paths), std::move(schema),
                {on_error_of(on_error), record_bytes_max, empty_files_of(empty_files)});
          },
          "paths"_a, "features"_a = std::vector<ExampleFeature>{}, nb::kw_only(), "label"_a = "",
          "binary_label"_a = false, "label_classes"_a = 0, "finite"_a = true,
          "record_bytes_max"_a = 64 << 20, "on_error"_a = "error", "empty_files"_a = "error",
          nb::sig("def tfrecords(" CAIRN_PATHS
                  ", features: collections.abc.Sequence[ExampleFeature] = (), *, label: str = '', "
                  "binary_label: bool = False, label_classes: int = 0, finite: bool = True, "
                  "record_bytes_max: int = 67108864, on_error: str = 'error', empty_files: str = "
                  "'error') -> Dataset"),
          "Records of TFRecord files: tf.train.Examples by their features, or, without any, each "
          "record as a text \"record\".\n\n"
          ">>> cairn.Dataset.tfrecords(\"train.tfrecord\", [cairn.ExampleFeature(\"x\", "
          "\"float32\")])\n"
          "<cairn.Dataset: x float32[]>")
      .def_static(
          "idx",
          [](std::vector<IdxColumn> columns, std::string label) {
            return Dataset::idx(std::move(columns), std::move(label));
          },
          "columns"_a, "label"_a = "",
          nb::sig("def idx(columns: collections.abc.Sequence[IdxColumn], label: str = '') -> "
                  "Dataset"),
          "Files of the IDX format side by side, a column each, as MNIST's.\n\n"
          ">>> cairn.Dataset.idx([cairn.IdxColumn(\"image\", \"images-idx3-ubyte.gz\", shape=(28, "
          "28))])\n"
          "<cairn.Dataset: image uint8[28, 28]>");
}

// ---- of other datasets ----

service::ProcessingMode mode_of(std::string word) {
  if (!word.ends_with("_epoch") && !word.ends_with("_epochs"))
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
  return service::parse_processing_mode(word);
}

void bind_combinations(nb::class_<Dataset>& dataset) {
  dataset
      .def_static("zip", &Dataset::zip, "datasets"_a,
                  "Elements of several datasets side by side, with the columns of all.\n\n"
                  ">>> both = cairn.Dataset.zip([cairn.Dataset.range(3), "
                  "cairn.Dataset.from_tensors({\"x\": np.zeros(2)})])\n"
                  ">>> both.cardinality()\n"
                  "1")
      .def_static("sample_from_datasets", &Dataset::sample_from_datasets, "datasets"_a,
                  "weights"_a = std::vector<double>{}, "seed"_a = 0,
                  "stop_on_empty_dataset"_a = false,
                  "Each element is the next one of a dataset that is drawn for it by weight.\n\n"
                  ">>> parts = [cairn.Dataset.range(2), cairn.Dataset.range(3)]\n"
                  ">>> len(list(cairn.Dataset.sample_from_datasets(parts, [0.8, 0.2], seed=1)))\n"
                  "5")
      .def_static(
          "from_service",
          [](const Dataset& data, std::string dispatcher, std::string job_name,
             const std::string& mode, const std::string& compression, std::string cluster,
             std::int64_t buffer_elements, std::uint32_t num_consumers,
             std::uint32_t consumer_index, std::string token) {
            service::DistributeOptions options;
            options.dispatcher = std::move(dispatcher);
            options.job_name = std::move(job_name);
            options.mode = mode_of(mode);
            options.compression =
                chosen<service::Compression>("compression", compression,
                                             {{"auto", service::Compression::kAuto},
                                              {"off", service::Compression::kOff},
                                              {"zlib", service::Compression::kZlib}});
            options.cluster = std::move(cluster);
            options.buffer_elements = buffer_elements;
            options.num_consumers = num_consumers;
            options.consumer_index = consumer_index;
            options.token = std::move(token);
            return released([&] { return service::distribute(data, std::move(options)); });
          },
          "dataset"_a, "dispatcher"_a = "", nb::kw_only(), "job_name"_a = "", "mode"_a = "off",
          "compression"_a = "auto", "cluster"_a = "", "buffer_elements"_a = 16,
          "num_consumers"_a = 0, "consumer_index"_a = 0, "token"_a = "",
          "Elements of `dataset` that a data service reads, and hands out to the consumers of the "
          "job. `mode` is \"off\" (each data worker reads all of it), \"dynamic\", \"file\", "
          "\"data\", \"file_or_data\" or \"hint\".\n\n"
          ">>> data = cairn.Dataset.range(100).batch(10)\n"
          ">>> cairn.Dataset.from_service(data, \"host:5050\", job_name=\"train\", "
          "mode=\"dynamic\")\n"
          "<cairn.Dataset batched: value int64[?]>");
}

}  // namespace

void bind_sources(nb::class_<Dataset>& dataset) {
  bind_memory(dataset);
  bind_generator(dataset);
  bind_text_files(dataset);
  bind_other_text_files(dataset);
  bind_binary_files(dataset);
  bind_combinations(dataset);
}

}  // namespace cairn::python
