// Reads the recorded vectors of tests/vectors (or of the folder that CAIRN_VECTORS names).
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/tensor/tensor.h"
#include "tests/core/exec/unread_inputs.h"

namespace cairn::testing {

inline Json vectors_at(const std::string& path) {
  if (!system_disk().exists(path))
    throw NotFoundError("no vectors at " + path +
                        ": run from the project's root or set CAIRN_VECTORS");
  return parse_json(system_disk().read(path), path);
}

// A case of another folder fails the test that loads it if an input has a form that this project's
// own cases of the kind do not have.
inline Json load_vectors(const std::string& topic) {
  const std::string own = "tests/vectors/" + topic + ".json";
  const char* folder = std::getenv("CAIRN_VECTORS");
  if (folder == nullptr) return vectors_at(own);
  const Json vectors = vectors_at(std::string(folder) + "/" + topic + ".json");
  KnownForms known;
  add_known_forms(vectors_at(own), known);
  const std::string more = "tests/vectors/more/" + topic + ".json";
  if (system_disk().exists(more)) add_known_forms(vectors_at(more), known);
  for (const std::string& unread : unread_inputs(vectors, known)) ADD_FAILURE() << unread;
  return vectors;
}

inline double number(const Json& datum) {
  if (datum.is_number()) return datum.get<double>();
  if (datum.is_boolean()) return datum.get<bool>() ? 1 : 0;
  std::string text = datum.get<std::string>();
  double infinity = std::numeric_limits<double>::infinity();
  return text == "inf"    ? infinity
         : text == "-inf" ? -infinity
                          : std::numeric_limits<double>::quiet_NaN();
}

inline Shape shape_of(const Json& json) { return Shape(json.get<std::vector<std::int64_t>>()); }

template <typename T>
Tensor typed_tensor(const Json& json) {
  Tensor made(DTypeOf<T>::value, shape_of(json.at("shape")));
  auto out = made.mutable_values<T>();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<T>(number(json.at("data").at(i)));
  return made;
}

inline Tensor tensor_of(const Json& json) {
  switch (parse_dtype(json.at("dtype").get<std::string>())) {
    case DType::kFloat32: return typed_tensor<float>(json);
    case DType::kInt32: return typed_tensor<std::int32_t>(json);
    case DType::kInt64: return typed_tensor<std::int64_t>(json);
    case DType::kBool: return typed_tensor<bool>(json);
    default:
      throw InvalidArgumentError("no reader for vectors of " + json.at("dtype").get<std::string>());
  }
}

inline bool near(double got, double want, double relative, double absolute = 1e-7) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

}  // namespace cairn::testing
