#include "model_data.h"

#include <nanobind/stl/string.h>

#include <algorithm>

namespace cairn::python {
namespace {

void refuse_generator(nb::handle x, const char* call) {
  if (PyIter_Check(x.ptr()) == 0) return;
  throw nb::type_error(str(call,
                           ": a generator or an iterator is read once, and steps run in other "
                           "threads or processes: give arrays, a dict of them, or a cairn.Dataset")
                           .c_str());
}

bool has_column(const ArrayData& data, const std::string& name) {
  return std::any_of(data.columns.begin(), data.columns.end(),
                     [&](const auto& column) { return column.first == name; });
}

void add(ArrayData& data, const std::string& name, nb::handle values, const char* call) {
  if (has_column(data, name))
    throw InvalidArgumentError(str(call, ": two columns are called \"", name,
                                   "\": features and labels share their names"));
  Tensor tensor = tensor_of(values);
  if (tensor.shape().rank() == 0)
    throw InvalidArgumentError(
        str(call, ": \"", name, "\" is a single number: its first axis has the examples"));
  if (!data.columns.empty() && tensor.shape()[0] != data.count)
    throw InvalidArgumentError(str(call, ": \"", name, "\" has ", tensor.shape()[0],
                                   " examples, and \"", data.columns.front().first, "\" has ",
                                   data.count));
  data.count = tensor.shape()[0];
  data.columns.emplace_back(name, std::move(tensor));
}

void add_all(ArrayData& data, nb::handle dict, const char* call) {
  for (auto [name, values] : nb::borrow<nb::dict>(dict)) {
    if (!nb::isinstance<nb::str>(name))
      throw nb::type_error(str(call, ": a dict of arrays is keyed by texts").c_str());
    add(data, nb::cast<std::string>(name), values, call);
  }
}

}  // namespace

void ArrayData::add_equal_weights() {
  if (!weights.empty()) return;
  weights = kWeightsColumn;
  Tensor ones(DType::kFloat32, {count});
  std::fill_n(reinterpret_cast<float*>(ones.mutable_raw()), count, 1.0f);
  columns.emplace_back(weights, std::move(ones));
}

ArrayData array_data(nb::handle x, nb::handle y, nb::handle sample_weight, const char* call) {
  ArrayData data;
  refuse_generator(x, call);
  if (nb::isinstance<nb::dict>(x))
    add_all(data, x, call);
  else
    add(data, "x", x, call);
  if (data.columns.empty()) throw InvalidArgumentError(str(call, ": the dict has no arrays"));
  if (nb::isinstance<nb::dict>(y)) {
    add_all(data, y, call);
  } else if (!y.is_none()) {
    data.label = "y";
    while (has_column(data, data.label)) data.label += "_";
    add(data, data.label, y, call);
  }
  if (!sample_weight.is_none()) {
    data.weights = kWeightsColumn;
    add(data, data.weights, sample_weight, call);
  }
  return data;
}

std::optional<Dataset> dataset_of(nb::handle x) {
  if (nb::isinstance<Dataset>(x)) return nb::cast<const Dataset&>(x);
  return std::nullopt;
}

}  // namespace cairn::python
