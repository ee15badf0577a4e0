#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "serving/api/json_text.h"
#include "serving/api/ragged_columns.h"
#include "serving/api/tf_json.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kBytesPerElement = 12;  // about, for reserve()

// By the numbers of DType.
constexpr std::array<const char*, kDTypeCount> kTfNames = {"DT_FLOAT", "DT_INT32",  "DT_INT64",
                                                           "DT_BOOL",  "DT_UINT8",  "DT_BFLOAT16",
                                                           "DT_HALF",  "DT_STRING", "DT_DOUBLE"};

const char* tf_name(DType dtype) { return kTfNames[static_cast<std::size_t>(dtype)]; }

bool is_bytes(const std::string& name) { return name.ends_with("_bytes"); }

void check_outputs(const Signature& signature, std::span<const Tensor> outputs) {
  CAIRN_CHECK(outputs.size() == signature.outputs.size() && !outputs.empty(), outputs.size(),
              " outputs for a signature of ", signature.outputs.size());
}

// The name of an output before its value, where there are several.
void append_name(std::string& out, const Signature& signature, std::size_t output) {
  if (output > 0) out += ", ";
  if (signature.outputs.size() == 1) return;
  append_json_text(out, signature.outputs[output].name);
  out += ": ";
}

std::string rows_of(const Signature& signature, std::span<const Tensor> outputs) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = outputs[i].shape();
    if (shape.rank() == 0 || shape[0] != outputs[0].shape()[0])
      throw InvalidArgumentError(
          str("the output \"", signature.outputs[i].name, "\" is ", outputs[i].type().to_string(),
              ", and predictions need one of each output for each instance: send the request in "
              "column form, with \"inputs\""));
    elements += static_cast<std::size_t>(shape.elements());
  }
  const std::int64_t rows = outputs[0].shape()[0];
  std::string out = "{\"predictions\": [";
  out.reserve(out.size() + elements * kBytesPerElement);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row > 0) out += ", ";
    if (outputs.size() > 1) out += '{';
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      append_name(out, signature, i);
      ElementWriter(outputs[i], is_bytes(signature.outputs[i].name))
          .append_nested(out, row * outputs[i].shape().row_elements(), 1);
    }
    if (outputs.size() > 1) out += '}';
  }
  return out += "]}";
}

std::string columns_of(const Signature& signature, std::span<const Tensor> outputs) {
  std::string out = "{\"outputs\": ";
  if (outputs.size() > 1) out += '{';
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    append_name(out, signature, i);
    ElementWriter(outputs[i], is_bytes(signature.outputs[i].name)).append_nested(out, 0, 0);
  }
  if (outputs.size() > 1) out += '}';
  return out += '}';
}

// The one output that classify and regress answer from.
const Tensor& scores_of(const Signature& signature, std::span<const Tensor> outputs,
                        const char* verb, bool several_columns) {
  check_outputs(signature, outputs);
  if (outputs.size() != 1)
    throw InvalidArgumentError(str("the model has ", outputs.size(), " outputs, and ", verb,
                                   " answers for models with one: send the request to :predict"));
  const Tensor& scores = outputs[0];
  const Shape& shape = scores.shape();
  const bool is_float = scores.dtype() == DType::kFloat32 || scores.dtype() == DType::kFloat64 ||
                        scores.dtype() == DType::kFloat16 || scores.dtype() == DType::kBfloat16;
  const bool fits = shape.rank() == 1 || (shape.rank() == 2 && (several_columns || shape[1] == 1));
  if (!is_float || !fits)
    throw InvalidArgumentError(
        str("the model's output is ", scores.type().to_string(), ", and ", verb,
            several_columns ? " answers for one of floats, [?] or [?, classes]"
                            : " answers for one of floats, [?] or [?, 1]",
            ": send the request to :predict"));
  return scores;
}

// One less the probability, in the type that it has.
Tensor complements(const Tensor& scores) {
  Tensor made(scores.dtype(), scores.shape());
  const auto n = static_cast<std::size_t>(scores.elements());
  const auto each = [&](auto* type, auto complement) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* const from = reinterpret_cast<const T*>(scores.raw());
    std::transform(from, from + n, reinterpret_cast<T*>(made.mutable_raw()), complement);
  };
  std::uint16_t* half = nullptr;
  switch (scores.dtype()) {
    case DType::kFloat64:
      each(static_cast<double*>(nullptr), [](double p) { return 1 - p; });
      break;
    case DType::kFloat16:
      each(half, [](std::uint16_t p) { return to_float16(1 - from_float16(p)); });
      break;
    case DType::kBfloat16:
      each(half, [](std::uint16_t p) { return to_bfloat16(1 - from_bfloat16(p)); });
      break;
    default: each(static_cast<float*>(nullptr), [](float p) { return 1 - p; });
  }
  return made;
}

void append_class(std::string& out, std::int64_t label, const ElementWriter& scores,
                  std::int64_t place) {
  out += label == 0 ? "[\"" : ", [\"";
  append_json_number(out, label);
  out += "\", ";
  scores.append(out, place, place + 1);
  out += ']';
}

void append_tensor_infos(std::string& out, const std::vector<ColumnSpec>& columns) {
  const RaggedColumns ragged = find_ragged(columns);
  bool is_first = true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (ragged.is_splits[i]) continue;
    const ColumnSpec& column = columns[i];
    if (!is_first) out += ", ";
    is_first = false;
    append_json_text(out, column.name);
    out += str(": {\"dtype\": \"", tf_name(column.type.dtype), "\", \"tensor_shape\": {\"dim\": [");
    std::vector<std::int64_t> dims = column.type.shape.dims();
    if (ragged.splits[i] != kNoColumn) dims.insert(dims.begin(), -1);
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      out += str(axis == 0 ? "" : ", ", "{\"size\": \"", dims[axis], "\", \"name\": \"\"}");
    out += "], \"unknown_rank\": false}, \"name\": ";
    append_json_text(out, column.name + ":0");
    out += '}';
  }
}

}  // namespace

std::string tf_predictions(const Signature& signature, std::span<const Tensor> outputs,
                           TfForm form) {
  check_outputs(signature, outputs);
  return form == TfForm::kRows ? rows_of(signature, outputs) : columns_of(signature, outputs);
}

std::string tf_classifications(const Signature& signature, std::span<const Tensor> outputs) {
  const Tensor& scores = scores_of(signature, outputs, ":classify", true);
  const std::int64_t rows = scores.shape()[0];
  const std::int64_t classes = scores.shape().rank() == 2 ? scores.shape()[1] : 1;
  const Tensor others = classes == 1 ? complements(scores) : Tensor();
  const ElementWriter writer(scores), other(others);
  std::string out = "{\"results\": [";
  for (std::int64_t row = 0; row < rows; ++row) {
    out += row == 0 ? "[" : ", [";
    if (classes == 1) {
      append_class(out, 0, other, row);
      append_class(out, 1, writer, row);
    } else {
      for (std::int64_t i = 0; i < classes; ++i) append_class(out, i, writer, row * classes + i);
    }
    out += ']';
  }
  return out += "]}";
}

std::string tf_regressions(const Signature& signature, std::span<const Tensor> outputs) {
  const Tensor& values = scores_of(signature, outputs, ":regress", false);
  std::string out = "{\"results\": [";
  ElementWriter(values).append(out, 0, values.elements());
  return out += "]}";
}

std::string tf_recommendations(const Tensor& ids, const std::vector<std::vector<TfScored>>& best,
                               TfForm form) {
  const ElementWriter id(ids);
  const auto append_ids = [&](std::string& out, const std::vector<TfScored>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      out += i == 0 ? "[" : ", ";
      id.append(out, list[i].place, list[i].place + 1);
    }
    out += list.empty() ? "[]" : "]";
  };
  const auto append_scores = [](std::string& out, const std::vector<TfScored>& list) {
    Tensor scores(DType::kFloat32, {std::ssize(list)});
    std::ranges::transform(list, scores.mutable_values<float>().begin(), &TfScored::score);
    out += '[';
    ElementWriter(scores).append(out, 0, scores.elements());
    out += ']';
  };
  std::string out = form == TfForm::kRows ? "{\"recommendations\": [" : "{\"outputs\": {\"ids\": [";
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (i > 0) out += ", ";
    if (form == TfForm::kRows) out += "{\"ids\": ";
    append_ids(out, best[i]);
    if (form == TfForm::kColumns) continue;
    out += ", \"scores\": ";
    append_scores(out, best[i]);
    out += '}';
  }
  if (form == TfForm::kRows) return out += "]}";
  out += "], \"scores\": [";
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (i > 0) out += ", ";
    append_scores(out, best[i]);
  }
  return out += "]}}";
}

std::string tf_metadata(const Signature& signature, std::int64_t version, const std::string& more) {
  std::string out = "{\"model_spec\": {\"name\": ";
  append_json_text(out, signature.model);
  out += str(", \"signature_name\": \"\", \"version\": \"", version,
             "\"}, \"metadata\": {\"signature_def\": {\"signature_def\": {\"serving_default\": "
             "{\"inputs\": {");
  append_tensor_infos(out, signature.input.columns);
  out += "}, \"outputs\": {";
  append_tensor_infos(out, signature.outputs);
  return out += str("}, \"method_name\": \"tensorflow/serving/predict\"}}}", more, "}}");
}

std::string tf_status(std::span<const TfVersionStatus> versions) {
  std::string out = "{\"model_version_status\": [";
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const TfVersionStatus& each = versions[i];
    out += str(i == 0 ? "" : ", ", "{\"version\": \"", each.version,
               "\", \"state\": ", json_quoted(each.state),
               ", \"status\": {\"error_code\": ", json_quoted(each.error_code),
               ", \"error_message\": ", json_quoted(each.error_message), "}}");
  }
  return out += "]}";
}

}  // namespace cairn::serving
