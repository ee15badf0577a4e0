// cairn.Dataset.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "functions.h"
#include "values.h"

namespace cairn::python {
namespace {

using Columns = std::vector<std::pair<std::string, Tensor>>;

Columns columns_of(const nb::dict& columns, bool copy) {
  Columns all;
  for (auto [name, values] : columns)
    all.emplace_back(nb::cast<std::string>(name), tensor_of(values, !copy));
  return all;
}

// map() and its kin call f(features), f(features, label) or f(batch), by f's parameters.
nb::object called_with(const nb::object& function, const Batch& element) {
  const nb::object inspect = nb::module_::import_("inspect");
  const nb::dict parameters = nb::dict(inspect.attr("signature")(function).attr("parameters"));
  if (parameters.size() == 2) {
    nb::object label = element.label.defined() ? nb::cast(element.label) : nb::none();
    return function(nb::cast(element.features), label);
  }
  return function(nb::cast(element.features));
}

std::function<Outputs(const Batch&)> mapped_by(nb::object function) {
  return [function](const Batch& element) {
    const Tracing tracing;
    Nest shape;
    return outputs_of(called_with(function, element), "map", &shape);
  };
}
std::function<Array(const Batch&)> judged_by(nb::object function) {
  return [function](const Batch& element) {
    const Tracing tracing;
    return array_of(called_with(function, element));
  };
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::class_<Dataset> dataset(
      m, "Dataset",
      R"(A description of data: where it comes from and what becomes of it, read where it is needed.

>>> data = cairn.Dataset.from_tensor_slices({"x": np.arange(4.0), "y": np.arange(4)}, label="y")
>>> data.batch(2)
<cairn.Dataset batched: x float64[?], y int64[?], the label>)");
  dataset
      .def_static(
          "from_tensor_slices",
          [](const nb::dict& columns, const std::string& label, bool copy) {
            return Dataset::from_tensor_slices(columns_of(columns, copy), label);
          },
          "columns"_a, "label"_a = "", "copy"_a = true,
          nb::sig("def from_tensor_slices(columns: collections.abc.Mapping[str, "
                  "cairn.typing.ArrayLike], label: str "
                  "= '', copy: bool = True) -> Dataset"),
          "Rows of arrays of the same length. Arrays that may be written to are copied, unless "
          "`copy` is False.")
      .def_static(
          "from_tensors",
          [](const nb::dict& columns, const std::string& label) {
            return Dataset::from_tensors(columns_of(columns, true), label);
          },
          "columns"_a, "label"_a = "",
          nb::sig("def from_tensors(columns: collections.abc.Mapping[str, cairn.typing.ArrayLike], "
                  "label: str = '') "
                  "-> Dataset"),
          "One element of these columns.")
      .def_static("range", &Dataset::range, "n"_a, "0, 1, ... n - 1, in the column \"value\".")
      .def(
          "shuffle",
          [](const Dataset& data, std::int64_t buffer_size, std::uint64_t seed) {
            return data.shuffle(buffer_size, seed);
          },
          "buffer_size"_a, "seed"_a = 0)
      .def(
          "batch",
          [](const Dataset& data, std::int64_t batch_size, bool drop_remainder) {
            return data.batch(batch_size, {.drop_remainder = drop_remainder});
          },
          "batch_size"_a, "drop_remainder"_a = false)
      .def(
          "padded_batch",
          [](const Dataset& data, std::int64_t batch_size, bool drop_remainder) {
            return data.padded_batch(batch_size, {.drop_remainder = drop_remainder});
          },
          "batch_size"_a, "drop_remainder"_a = false)
      .def("unbatch", &Dataset::unbatch)
      .def(
          "repeat",
          [](const Dataset& data, std::optional<std::int64_t> count) {
            return data.repeat(count.value_or(-1));
          },
          "count"_a = nb::none())
      .def("take", &Dataset::take, "count"_a)
      .def("skip", &Dataset::skip, "count"_a)
      .def("prefetch", &Dataset::prefetch, "n"_a)
      .def("concatenate", &Dataset::concatenate, "other"_a)
      .def(
          "shard",
          [](const Dataset& data, std::int64_t num, std::int64_t index) {
            return data.shard(num, index);
          },
          "num_shards"_a, "index"_a)
      .def(
          "map",
          [](const Dataset& data, nb::object function) {
            return data.map(mapped_by(std::move(function)));
          },
          "function"_a,
          nb::sig("def map(self, function: collections.abc.Callable[..., typing.Any]) -> Dataset"))
      .def(
          "filter",
          [](const Dataset& data, nb::object function) {
            return data.filter(judged_by(std::move(function)));
          },
          "function"_a,
          nb::sig(
              "def filter(self, function: collections.abc.Callable[..., typing.Any]) -> Dataset"))
      .def(
          "take_while",
          [](const Dataset& data, nb::object function) {
            return data.take_while(judged_by(std::move(function)));
          },
          "function"_a,
          nb::sig("def take_while(self, function: collections.abc.Callable[..., typing.Any]) -> "
                  "Dataset"))
      .def_prop_ro("batched", &Dataset::batched, "Whether an element is a batch.")
      .def(
          "cardinality",
          [](const Dataset& data) -> std::optional<std::int64_t> {
            const std::int64_t count = released([&] { return cardinality(data); });
            if (count == kInfiniteCardinality) return std::nullopt;
            return count;
          },
          "How many elements there are; None: without end.")
      .def("__repr__", [](const Dataset& data) {
        const ElementSpec& spec = data.element_spec();
        std::string text;
        for (const ColumnSpec& column : spec.columns) {
          text += str(text.empty() ? "" : ", ", column.name, " ", column.type.to_string());
          if (column.name == spec.label) text += ", the label";
        }
        return str("<cairn.Dataset", data.batched() ? " batched" : "", ": ", text, ">");
      });
}

}  // namespace cairn::python
