#include "model_data.h"

#include <nanobind/stl/string.h>

#include <algorithm>

namespace cairn::python {
namespace {

constexpr const char* kRowSplits = "/row_splits";

// A series of pandas or polars is an array, although Arrow may read it as well.
bool is_frame(nb::handle x) {
  return is_table(x) && (nb::hasattr(x, "columns") || !nb::hasattr(x, "__array__"));
}

bool has_column(const Columns& columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const auto& column) { return column.first == name; });
}

std::int64_t rows_of(const Columns& columns, std::size_t place, const char* call) {
  const auto& [name, values] = columns[place];
  if (place + 1 < columns.size() && columns[place + 1].first == name + kRowSplits)
    return columns[place + 1].second.elements() - 1;
  if (values.shape().rank() == 0)
    throw InvalidArgumentError(
        str(call, ": \"", name, "\" is a single number: its first axis has the examples"));
  return values.shape()[0];
}

void add(ArrayData& data, Columns more, const char* call) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    const std::string& name = more[i].first;
    if (has_column(data.columns, name))
      throw InvalidArgumentError(str(call, ": two columns are called \"", name,
                                     "\": features and labels share their names"));
    const std::int64_t rows = rows_of(more, i, call);
    if (!data.columns.empty() && rows != data.count)
      throw InvalidArgumentError(str(call, ": \"", name, "\" has ", rows, " examples, and \"",
                                     data.columns.front().first, "\" has ", data.count));
    data.count = rows;
    const bool ragged = i + 1 < more.size() && more[i + 1].first == name + kRowSplits;
    data.columns.push_back(more[i]);
    if (ragged) data.columns.push_back(more[++i]);
  }
}
void add(ArrayData& data, const std::string& name, nb::handle values, const char* call) {
  add(data, Columns{{name, tensor_of(values)}}, call);
}

// The name of a column that is there.
std::string named_column(const ArrayData& data, nb::handle name, const char* call) {
  const auto text = nb::cast<std::string>(name);
  if (has_column(data.columns, text)) return text;
  std::vector<std::string> names;
  for (const auto& [each, values] : data.columns) names.push_back(each);
  const std::string near = nearest_name(text, names);
  throw InvalidArgumentError(str(call, ": there is no column \"", text, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

void add_labels(ArrayData& data, nb::handle y, const char* call) {
  if (y.is_none()) return;
  if (nb::isinstance<nb::str>(y)) {
    data.label = named_column(data, y, call);
    return;
  }
  if (std::optional<Columns> labels = columns_by_name(y)) {
    if (labels->size() == 1 && is_frame(y)) data.label = labels->front().first;
    return add(data, std::move(*labels), call);
  }
  data.label = "y";
  while (has_column(data.columns, data.label)) data.label += "_";
  add(data, data.label, y, call);
}

}  // namespace

void refuse_generator(nb::handle x, const char* call) {
  if (PyIter_Check(x.ptr()) == 0) return;
  throw nb::type_error(str(call,
                           ": a generator or an iterator is read once, and steps run in other "
                           "threads or processes: give arrays, a dict of them, a table, or a "
                           "cairn.Dataset")
                           .c_str());
}

void ArrayData::add_equal_weights() {
  if (!weights.empty()) return;
  weights = kWeightsColumn;
  Tensor ones(DType::kFloat32, {count});
  std::fill_n(reinterpret_cast<float*>(ones.mutable_raw()), count, 1.0f);
  columns.emplace_back(weights, std::move(ones));
}

std::optional<Columns> columns_by_name(nb::handle x) {
  if (nb::isinstance<nb::dict>(x)) return columns_of_mapping(x, false);
  if (is_frame(x)) return columns_of_table(x);
  return std::nullopt;
}

ArrayData array_data(nb::handle x, nb::handle y, nb::handle sample_weight, const char* call) {
  ArrayData data;
  refuse_generator(x, call);
  if (std::optional<Columns> columns = columns_by_name(x))
    add(data, std::move(*columns), call);
  else
    add(data, "x", x, call);
  if (data.columns.empty()) throw InvalidArgumentError(str(call, ": there are no arrays"));
  add_labels(data, y, call);
  if (nb::isinstance<nb::str>(sample_weight)) {
    data.weights = named_column(data, sample_weight, call);
  } else if (!sample_weight.is_none()) {
    data.weights = kWeightsColumn;
    add(data, data.weights, sample_weight, call);
  }
  return data;
}

std::optional<Dataset> dataset_of(nb::handle x) {
  if (nb::isinstance<Dataset>(x)) return nb::cast<const Dataset&>(x);
  return std::nullopt;
}

nb::object table_of_outputs(const std::vector<std::string>& names,
                            const std::vector<nb::object>& outputs) {
  nb::dict columns;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    nb::object values = outputs[i];
    const nb::tuple shape = nb::borrow<nb::tuple>(values.attr("shape"));
    if (nb::len(shape) == 2 && nb::cast<std::int64_t>(nb::object(shape[1])) == 1)
      values = values.attr("reshape")(-1);
    columns[names[i].empty() ? "output" : names[i].c_str()] = values;
  }
  return nb::module_::import_("cairn._cairn").attr("Table")(columns);
}

}  // namespace cairn::python
