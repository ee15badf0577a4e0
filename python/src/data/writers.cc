// Writing files of examples: TFRecords, and made-up click logs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data.h"
#include "data/file/tfrecord_writer.h"
#include "data/format/criteo_like.h"
#include "values.h"

namespace cairn::python {
namespace {

// A tf.train.Example of a dict: floats, whole numbers or texts by name.
std::string example_of(const nb::dict& features) {
  ExampleMessage message;
  for (auto [key, value] : features) {
    const auto name = nb::cast<std::string>(key);
    const Tensor values = tensor_of(value);
    if (values.elements() == 0) continue;  // an empty list has no type, and means no feature
    switch (values.dtype()) {
      case DType::kString: {
        const auto texts = values.string_values();
        message.texts(name, {texts.begin(), texts.end()});
        break;
      }
      case DType::kFloat32:
      case DType::kFloat64:
      case DType::kFloat16: {
        const Tensor floats = cast(Array(values), DType::kFloat32).eval();
        message.floats(name, floats.values<float>());
        break;
      }
      default: {
        const Tensor whole = cast(Array(values), DType::kInt64).eval();
        message.integers(name, whole.values<std::int64_t>());
      }
    }
  }
  return message.bytes();
}

class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path)
      : writer_(std::make_unique<TfRecordWriter>(path)) {}
  void write(const std::string& record) {
    open();
    released([&] { writer_->write(record); });
  }
  void close() {
    if (writer_ == nullptr) return;
    released([&] { writer_->finish(); });
    writer_.reset();
  }
  // Leaves no file.
  void drop() { writer_.reset(); }

 private:
  void open() const {
    if (writer_ == nullptr) throw FailedPreconditionError("the file has been closed");
  }
  std::unique_ptr<TfRecordWriter> writer_;
};

void bind_tfrecord_writer(nb::module_& m) {
  nb::class_<RecordWriter>(m, "TfRecordWriter",
                           R"(Writes a TFRecord file, which appears whole or not at all.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/x.tfrecord"
>>> with cairn.TfRecordWriter(path) as file:
...     file.write({"x": [0.5, 1.0], "id": 7, "word": "seven"})
>>> data = cairn.Dataset.tfrecords(path, [cairn.ExampleFeature("x", "float32", shape=(2,))])
>>> next(iter(data))["x"]
array([0.5, 1. ], dtype=float32))")
      .def(
          "__init__",
          [](RecordWriter* made, nb::handle path) { new (made) RecordWriter(path_of(path)); },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def(
          "write",
          [](RecordWriter& file, nb::handle record) {
            if (nb::isinstance<nb::dict>(record))
              return file.write(example_of(nb::borrow<nb::dict>(record)));
            const nb::bytes bytes = nb::cast<nb::bytes>(record);
            file.write(std::string(bytes.c_str(), bytes.size()));
          },
          "record"_a,
          nb::sig("def write(self, record: bytes | collections.abc.Mapping[str, "
                  "cairn.typing.ArrayLike]) -> None"),
          "A record as it is, or a tf.train.Example of a dict of floats, whole numbers or texts.")
      .def("close", &RecordWriter::close, "Ends the file, which is there from now on.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> TfRecordWriter"))
      .def(
          "__exit__",
          [](RecordWriter& file, nb::args error) {
            if (error.size() > 0 && nb::handle(error[0]).is_none())
              file.close();
            else
              file.drop();
          },
          nb::sig("def __exit__(self, *error: object) -> None"));
}

nb::dict dict_of(const CriteoSummary& summary) {
  nb::dict made;
  made["rows"] = summary.rows;
  made["positives"] = summary.positives;
  made["log_loss"] = summary.log_loss;
  made["auc"] = summary.auc;
  return made;
}

void bind_criteo_like(nb::module_& m) {
  nb::class_<CriteoLike> clicks(
      m, "CriteoLike",
      R"(Made-up click logs of the shape of Criteo's: 13 counts and 26 ids.

The labels are drawn from a hidden model, whose own figures write_tsv() and write_records() give.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/clicks.tsv"
>>> cairn.CriteoLike(seed=1).write_tsv(path, 0, 100)["rows"]
100
>>> cairn.Dataset.criteo(path).cardinality()
100)");
  clicks
      .def(
          "__init__",
          [](CriteoLike* made, std::uint64_t seed, double exponent, std::int64_t rows_max) {
            CriteoLikeOptions options{seed, exponent, criteo_table_rows(rows_max)};
            new (made) CriteoLike(std::move(options));
          },
          nb::kw_only(), "seed"_a = 1, "exponent"_a = 1.0, "rows_max"_a = 2'000'000,
          "Ids follow a power law of this exponent; no table of ids has more than `rows_max` rows.")
      .def(
          "example", [](const CriteoLike& of, std::int64_t row) { return of.example(row); },
          "row"_a, "One row.")
      .def(
          "write_tsv",
          [](const CriteoLike& of, const std::string& path, std::int64_t begin, std::int64_t end) {
            return dict_of(released([&] { return write_criteo_tsv(of, begin, end, path); }));
          },
          "path"_a, "begin"_a, "end"_a,
          nb::sig("def write_tsv(self, path: str, begin: int, end: int) -> dict[str, float]"),
          "Rows [begin, end) as lines for Dataset.criteo(); gives how well they can be predicted.")
      .def(
          "write_records",
          [](const CriteoLike& of, const std::string& path, std::int64_t begin, std::int64_t end) {
            return dict_of(released([&] { return write_criteo_records(of, begin, end, path); }));
          },
          "path"_a, "begin"_a, "end"_a,
          nb::sig("def write_records(self, path: str, begin: int, end: int) -> dict[str, float]"),
          "The same as records for Dataset.criteo_records().");
  m.def("criteo_table_rows", &criteo_table_rows, "rows_max"_a = 2'000'000,
        "How many rows the tables of Criteo's 26 ids have, none more than `rows_max`.\n\n>>> "
        "len(cairn.criteo_table_rows())\n26");
}

}  // namespace

void bind_writers(nb::module_& m) {
  bind_tfrecord_writer(m);
  bind_criteo_like(m);
}

}  // namespace cairn::python
