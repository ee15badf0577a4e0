// cairn.Dataset: what becomes of its elements.
#include "data.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "data/dataset/hash_split.h"
#include "elements.h"
#include "functions.h"
#include "parts.h"
#include "tables.h"
#include "values.h"

namespace cairn::python {
namespace {

// How many there are; 1 of a callable that does not tell.
std::size_t parameters_of(const nb::object& function) {
  try {
    const nb::object inspect = nb::module_::import_("inspect");
    return nb::len(nb::object(inspect.attr("signature")(function).attr("parameters")));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    return 1;
  }
}

// map() and its kin call f(features, label) or f(features), by f's parameters.
nb::object called_with(const nb::object& function, const Batch& element) {
  if (parameters_of(function) == 2) {
    nb::object label = element.label.defined() ? nb::cast(element.label) : nb::none();
    return function(nb::cast(element.features), label);
  }
  return function(nb::cast(element.features));
}

std::function<Outputs(const Batch&)> mapped_by(nb::object function) {
  require_function(function, "map() takes a function of the features, or of features and label");
  return [function](const Batch& element) {
    const Tracing tracing;
    Nest shape;
    return outputs_of(called_with(function, element), "the function of map()", function, &shape);
  };
}
std::function<Array(const Batch&)> judged_by(nb::object function, const char* call) {
  require_function(function,
                   str(call, "() takes a function of the features, or of features and label"));
  return [function, call](const Batch& element) {
    const Tracing tracing;
    const nb::object judged = called_with(function, element);
    return at_place([&] { return str("the function of ", call, "()"); },
                    [&] { return array_of(judged); });
  };
}

// ---- of examples and of functions ----

#define CAIRN_FUNCTION "function: collections.abc.Callable[..., typing.Any]"

void bind_functions_of_elements(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "map",
          [](const Dataset& data, nb::object function, std::int64_t num_parallel_calls) {
            return data.map(mapped_by(std::move(function)), {num_parallel_calls});
          },
          "function"_a, "num_parallel_calls"_a = 1,
          nb::sig("def map(self, " CAIRN_FUNCTION ", num_parallel_calls: int = 1) -> Dataset"),
          R"(The columns that a recorded function of an element returns, as a dict.

`function` takes (features) or (features, label). The label stays unless a column has its name.

>>> data = cairn.Dataset.range(4).batch(2).map(lambda of: {"twice": of["value"] * 2})
>>> [batch["twice"].tolist() for batch in data]
[[0, 2], [4, 6]])")
      .def(
          "filter",
          [](const Dataset& data, nb::object predicate) {
            return data.filter(judged_by(std::move(predicate), "filter"));
          },
          "predicate"_a,
          nb::sig("def filter(self, predicate: collections.abc.Callable[..., typing.Any]) -> "
                  "Dataset"),
          "The elements for which a recorded function is true.\n\n"
          ">>> few = cairn.Dataset.range(9).filter(lambda of: of[\"value\"] > 6)\n"
          ">>> [int(each[\"value\"]) for each in few]\n[7, 8]")
      .def(
          "take_while",
          [](const Dataset& data, nb::object predicate) {
            return data.take_while(judged_by(std::move(predicate), "take_while"));
          },
          "predicate"_a,
          nb::sig("def take_while(self, predicate: collections.abc.Callable[..., typing.Any]) -> "
                  "Dataset"),
          "The elements before the first for which a recorded function is not true.\n\n"
          ">>> few = cairn.Dataset.range(9).take_while(lambda of: of[\"value\"] < 2)\n"
          ">>> [int(each[\"value\"]) for each in few]\n"
          "[0, 1]")
      .def(
          "apply", [](nb::handle self, nb::handle function) { return function(self); },
          "function"_a,
          nb::sig("def apply(self, function: collections.abc.Callable[[Dataset], Dataset]) -> "
                  "Dataset"),
          "function(dataset), for chains of calls.\n\n"
          ">>> cairn.Dataset.range(9).apply(lambda data: data.skip(2).batch(3)).cardinality()\n"
          "3");
}

void bind_feature_calls(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "features",
          [](const Dataset& data, nb::handle columns) {
            return data.features(feature_columns_of(columns));
          },
          "columns"_a,
          nb::sig("def features(self, columns: FeatureColumn | "
                  "collections.abc.Sequence[FeatureColumn]) -> Dataset"),
          "Replaces all columns but the label by what a model reads. Before batch() only.\n\n"
          ">>> data = cairn.Dataset.from_tensor_slices({\"x\": np.array([3.0])})\n"
          ">>> data.features(cairn.FeatureColumn.bucketised(\"x\", [1.0, 2.0]))\n"
          "<cairn.Dataset: x_bucket int64[]>")
      .def(
          "spill",
          [](const Dataset& data, nb::handle folder, std::int64_t bytes_min) {
            const std::string path = path_of(folder);
            return released([&] { return spilled(data, path, bytes_min); });
          },
          "folder"_a, "bytes_min"_a = 0,
          nb::sig("def spill(self, folder: str | os.PathLike[str], bytes_min: int = 0) -> Dataset"),
          "The same data with arrays and tables of more than `bytes_min` bytes in files of a "
          "folder that all workers see, which map them: for what is larger than the 64 MiB that "
          "travel to workers, and for ragged columns.\n\n"
          ">>> import tempfile\n"
          ">>> data = cairn.Dataset.from_tensor_slices({\"x\": np.arange(4)})\n"
          ">>> data.spill(tempfile.mkdtemp()).batch(3).cardinality()\n2")
      .def(
          "hash_split",
          [](const Dataset& data, std::string column, double begin, double end) {
            return hash_split(data, std::move(column), begin, end);
          },
          "column"_a, "begin"_a, "end"_a,
          "The examples whose value of a column hashes into [begin, end), a part of [0, 1): "
          "training data apart from validation data.\n\n"
          ">>> data = cairn.Dataset.range(100)\n"
          ">>> data.hash_split(\"value\", 0, 0.8).cardinality() + data.hash_split(\"value\", 0.8, "
          "1).cardinality()\n"
          "100");
}

// ---- of any elements ----

void bind_orders(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "shuffle",
          [](const Dataset& data, std::int64_t buffer_size, std::uint64_t seed,
             bool reshuffle_each_iteration, std::int64_t pipeline) {
            return data.shuffle(buffer_size, seed, {reshuffle_each_iteration, pipeline});
          },
          "buffer_size"_a, "seed"_a = 0, "reshuffle_each_iteration"_a = true, nb::kw_only(),
          "pipeline"_a = 0,
          "Blocks of `buffer_size` elements, each in an order drawn from seed, epoch and block.\n\n"
          ">>> sorted(int(each[\"value\"]) for each in cairn.Dataset.range(4).shuffle(4, seed=1))\n"
          "[0, 1, 2, 3]")
      .def(
          "for_pipeline", &Dataset::for_pipeline, "id"_a,
          "The same elements in the orders of this input pipeline, where several read the same.\n\n"
          ">>> len(list(cairn.Dataset.range(4).shuffle(4, seed=1).for_pipeline(2)))\n"
          "4")
      .def(
          "repeat",
          [](const Dataset& data, std::optional<std::int64_t> count) {
            return data.repeat(count.value_or(-1));
          },
          "count"_a = nb::none(),
          "So many passes, one after another; None: without end.\n\n"
          ">>> cairn.Dataset.range(3).repeat(2).cardinality()\n"
          "6")
      .def("take", &Dataset::take, "count"_a,
           "The first `count` elements.\n\n"
           ">>> cairn.Dataset.range(9).take(2).cardinality()\n"
           "2")
      .def("skip", &Dataset::skip, "count"_a,
           "All but the first `count` elements.\n\n"
           ">>> cairn.Dataset.range(9).skip(2).cardinality()\n"
           "7");
}

void bind_parts_and_files(nb::class_<Dataset>& dataset) {
  dataset
      .def("concatenate", &Dataset::concatenate, "other"_a,
           "These elements, then those of `other`, which has the same columns.\n\n"
           ">>> cairn.Dataset.range(2).concatenate(cairn.Dataset.range(3)).cardinality()\n"
           "5")
      .def(
          "shard",
          [](const Dataset& data, std::int64_t num_shards, std::int64_t index) {
            return data.shard(num_shards, index);
          },
          "num_shards"_a, "index"_a,
          "Every num_shards-th element from `index` on.\n\n"
          ">>> [int(each[\"value\"]) for each in cairn.Dataset.range(7).shard(3, 1)]\n"
          "[1, 4]")
      .def(
          "shard",
          [](const Dataset& data, const InputContext& context) { return data.shard(context); },
          "context"_a, "The part of an input pipeline, as a dataset function is asked for it.")
      .def("shard_hint", &Dataset::shard_hint,
           "Where a strategy that shards by hints puts its shard().\n\n"
           ">>> cairn.Dataset.range(7).shard_hint().batch(2)\n"
           "<cairn.Dataset batched: value int64[?]>")
      .def("interleave", &Dataset::interleave, "cycle_length"_a, "block_length"_a = 1,
           "Reads `cycle_length` of the source's files at once, and takes `block_length` elements "
           "from each in turn.\n\n"
           ">>> files = [\"part-0.csv\", \"part-1.csv\"]\n"
           ">>> cairn.Dataset.csv(files, {\"x\": \"float32\"}).interleave(2)\n"
           "<cairn.Dataset: x float32[]>")
      .def(
          "cache",
          [](const Dataset& data, std::string filename, std::optional<std::int64_t> bytes_max) {
            CacheOptions options;
            options.file = std::move(filename);
            if (bytes_max) options.bytes_max = *bytes_max;
            return data.cache(options);
          },
          "filename"_a = "", "bytes_max"_a = nb::none(),
          "Keeps the elements of the first pass for later ones: in memory, or in a file whose name "
          "begins so.\n\n"
          ">>> len(list(cairn.Dataset.range(3).cache().repeat(2)))\n"
          "6")
      .def("prefetch", &Dataset::prefetch, "buffer_size"_a,
           "Reads up to so many elements ahead; cairn.AUTOTUNE: as many as prove to be wanted.\n\n"
           ">>> len(list(cairn.Dataset.range(3).batch(2).prefetch(cairn.AUTOTUNE)))\n"
           "2");
}

std::vector<std::int64_t> sizes_of(nb::handle sizes) {
  if (PyLong_Check(sizes.ptr())) return {nb::cast<std::int64_t>(sizes)};
  return nb::cast<std::vector<std::int64_t>>(sizes);
}

void bind_batches(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "batch",
          [](const Dataset& data, std::int64_t batch_size, bool drop_remainder) {
            return data.batch(batch_size, {.drop_remainder = drop_remainder});
          },
          "batch_size"_a, "drop_remainder"_a = false,
          "Batches of so many elements; the last one has fewer, or is left out.\n\n"
          ">>> [len(batch[\"value\"]) for batch in cairn.Dataset.range(5).batch(2)]\n[2, 2, 1]")
      .def(
          "padded_batch",
          [](const Dataset& data, std::int64_t batch_size, bool drop_remainder) {
            return data.padded_batch(batch_size, {.drop_remainder = drop_remainder});
          },
          "batch_size"_a, "drop_remainder"_a = false,
          "Batches whose ragged columns are filled up to the longest, with zeros or empty "
          "texts.\n\n"
          ">>> words = cairn.Ragged(np.array([7, 8, 9]), np.array([0, 2, 3]))\n"
          ">>> data = cairn.Dataset.from_tensor_slices({\"words\": words}).padded_batch(2)\n"
          ">>> next(iter(data))[\"words\"]\n"
          "array([[7, 8],\n"
          "       [9, 0]])")
      .def("unbatch", &Dataset::unbatch,
           "The rows of each batch, one after another.\n\n"
           ">>> cairn.Dataset.range(5).batch(2).unbatch().batch(3).cardinality()\n"
           "2")
      .def(
          "rebatch",
          [](const Dataset& data, nb::handle batch_size, bool drop_remainder) {
            return data.rebatch(sizes_of(batch_size), {.drop_remainder = drop_remainder});
          },
          "batch_size"_a, "drop_remainder"_a = false,
          nb::sig("def rebatch(self, batch_size: int | collections.abc.Sequence[int], "
                  "drop_remainder: bool = False) -> Dataset"),
          "The same examples in batches of another size, or of several sizes in turn.\n\n"
          ">>> [len(batch[\"value\"]) for batch in cairn.Dataset.range(5).batch(2).rebatch(3)]\n"
          "[3, 2]")
      .def(
          "window",
          [](const Dataset& data, std::int64_t size, std::optional<std::int64_t> shift,
             std::int64_t stride, bool drop_remainder) {
            return data.window(size, {shift.value_or(0), stride, drop_remainder});
          },
          "size"_a, "shift"_a = nb::none(), "stride"_a = 1, "drop_remainder"_a = false,
          "Batches of `size` elements, `stride` apart, each beginning `shift` after the one "
          "before.\n\n"
          ">>> data = cairn.Dataset.range(4).window(2, shift=1, drop_remainder=True)\n"
          ">>> [batch[\"value\"].tolist() for batch in data]\n"
          "[[0, 1], [1, 2], [2, 3]]");
}

void bind_looks(nb::class_<Dataset>& dataset) {
  dataset
      .def_prop_ro(
          "element_spec", [](const Dataset& data) { return data.element_spec(); },
          "The columns of an element, with their types.\n\n"
          ">>> cairn.Dataset.range(4).batch(2).element_spec[\"value\"].shape\n"
          "(None,)")
      .def_prop_ro("batched", &Dataset::batched,
                   "Whether an element is a batch.\n\n"
                   ">>> cairn.Dataset.range(4).batch(2).batched\n"
                   "True")
      .def(
          "cardinality",
          [](const Dataset& data) -> std::optional<std::int64_t> {
            const std::int64_t count = released([&] { return cardinality(data); });
            if (count == kInfiniteCardinality) return std::nullopt;
            return count;
          },
          "How many elements there are; None: without end.\n\n"
          ">>> cairn.Dataset.range(4).cardinality()\n"
          "4")
      .def(
          "__iter__",
          [](const Dataset& data) {
            return released([&] { return std::make_unique<ElementIterator>(data); });
          },
          "Each element is a dict of NumPy arrays by column; a ragged one is a cairn.Ragged.")
      .def(
          "as_numpy_iterator",
          [](const Dataset& data) {
            return released([&] { return std::make_unique<ElementIterator>(data); });
          },
          "The same as iter(dataset).\n\n"
          ">>> next(cairn.Dataset.range(4).as_numpy_iterator())[\"value\"].item()\n"
          "0")
      .def("__repr__",
           [](const Dataset& data) {
             return str("<cairn.Dataset", data.batched() ? " batched" : "", ": ",
                        text_of(data.element_spec()), ">");
           })
      .def("_repr_html_", [](const Dataset& data) {
        return html_of(data.element_spec(),
                       data.batched() ? "cairn.Dataset, batched" : "cairn.Dataset");
      });
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_schemas(m);
  bind_elements(m);
  bind_tables(m);
  bind_arrow_out(m);
  nb::class_<Dataset> dataset(
      m, "Dataset",
      R"(A description of data: where it comes from and what becomes of it, read where it is needed.

>>> data = cairn.Dataset.from_tensor_slices({"x": np.arange(4.0), "y": np.arange(4)}, label="y")
>>> data.batch(2)
<cairn.Dataset batched: x float64[?], y int64[?], the label>
>>> for batch in data.batch(2):
...     print(batch["x"], batch["y"])
[0. 1.] [0 1]
[2. 3.] [2 3])");
  bind_features(m);
  bind_writers(m);
  bind_sources(dataset);
  bind_functions_of_elements(dataset);
  bind_feature_calls(dataset);
  bind_orders(dataset);
  bind_parts_and_files(dataset);
  bind_batches(dataset);
  bind_looks(dataset);
  bind_opening(dataset);
  m.attr("AUTOTUNE") = kAutotune;
  m.def(
      "list_files", [](const std::string& pattern) { return list_files(pattern); }, "pattern"_a,
      "The files that a pattern of the shell names (\"part-*.csv\"), in the order of their "
      "names.\n\n"
      ">>> import os, tempfile\n"
      ">>> folder = tempfile.mkdtemp()\n"
      ">>> _ = open(folder + \"/part-0.csv\", \"w\")\n"
      ">>> [os.path.basename(path) for path in cairn.list_files(folder + \"/part-*.csv\")]\n"
      "['part-0.csv']");
}

}  // namespace cairn::python
