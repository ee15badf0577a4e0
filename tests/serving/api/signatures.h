// Signatures and refusals that the tests of the codecs share.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "serving/api/tensors.h"

namespace cairn::serving {

constexpr std::int64_t kAny = Shape::kUnknown;

// A model "m" of these inputs, with the output "y", float32[?].
inline Signature signature_of(std::vector<ColumnSpec> inputs) {
  Signature made;
  made.model = "m";
  made.input.columns = std::move(inputs);
  made.outputs = {{"y", {DType::kFloat32, {kAny}}}};
  return made;
}

// The three inputs of the examples in TensorFlow Serving's documentation.
inline Signature documented() {
  return signature_of({{"tag", {DType::kString, {kAny}}},
                       {"signal", {DType::kFloat32, {kAny, 5}}},
                       {"sensor", {DType::kInt64, {kAny, 2, 2}}}});
}

// A float beside a ragged column of ids.
inline Signature ragged() {
  return signature_of({{"price", {DType::kFloat32, {kAny}}},
                       {"tags", {DType::kInt64, {kAny}}},
                       {"tags/row_splits", {DType::kInt64, {kAny}}}});
}

// Two inputs and two outputs of the Open Inference Protocol's examples.
inline Signature two_inputs() {
  Signature made =
      signature_of({{"input0", {DType::kInt64, {kAny, 2}}}, {"input1", {DType::kBool, {kAny}}}});
  made.outputs = {{"output0", {DType::kFloat32, {kAny, 2}}}, {"label", {DType::kString, {kAny}}}};
  return made;
}

template <typename T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// The message with which `act` refuses its input; "" if it does not.
template <typename Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

inline std::vector<std::string> texts(const Element& columns) {
  std::vector<std::string> all;
  for (const Tensor& column : columns) all.push_back(column.to_string(99));
  return all;
}

}  // namespace cairn::serving
