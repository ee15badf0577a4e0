#include <array>

#include "core/base/error.h"
#include "serving/api/infer.h"
#include "serving/api/infer_binary.h"
#include "serving/api/json_text.h"

namespace cairn::serving {
namespace {

// By the numbers of DType.
constexpr std::array<std::string_view, kDTypeCount> kDatatypes = {
    "FP32", "INT32", "INT64", "BOOL", "UINT8", "BF16", "FP16", "BYTES", "FP64"};

std::string dims_text(const Shape& shape) {
  std::string out = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out += ", ";
    append_json_number(out, shape[axis]);
  }
  return out += "]";
}

std::string metadata_of(const std::vector<ColumnSpec>& columns) {
  std::string out = "[";
  for (const ColumnSpec& column : columns)
    out += str(out.size() > 1 ? ", " : "", "{\"name\": ", json_quoted(column.name),
               ", \"datatype\": \"", infer_datatype(column.type.dtype),
               "\", \"shape\": ", dims_text(column.type.shape), "}");
  return out += "]";
}

void append_data(std::string& out, const std::string& name, const Tensor& tensor) {
  if (tensor.dtype() == DType::kString)
    for (const std::string& text : tensor.string_values())
      if (!is_utf8(text))
        throw InvalidArgumentError(str("the output \"", name,
                                       "\" has a string that is not UTF-8, which JSON cannot hold: "
                                       "ask for it with \"parameters\": {\"binary_data\": true}"));
  out += ", \"data\": [";
  ElementWriter(tensor).append(out, 0, tensor.elements());
  out += "]}";
}

}  // namespace

std::string_view infer_datatype(DType dtype) { return kDatatypes[static_cast<std::size_t>(dtype)]; }

InferAnswer infer_answer(const Signature& signature, std::int64_t version,
                         const InferRequest& request, std::span<const Tensor> outputs) {
  CAIRN_CHECK(outputs.size() == signature.outputs.size(), outputs.size(),
              " outputs for a signature of ", signature.outputs.size());
  InferAnswer answer;
  std::string& out = answer.body;
  out = "{\"model_name\": ";
  append_json_text(out, signature.model);
  out += ", \"model_version\": \"";
  append_json_number(out, version);
  out += '"';
  if (!request.id.empty()) {
    out += ", \"id\": ";
    append_json_text(out, request.id);
  }
  out += ", \"outputs\": [";
  bool is_first = true, has_binary = false;
  for (const InferOutput& wanted : request.outputs) {
    const Tensor& tensor = outputs[wanted.index];
    const std::string& name = signature.outputs[wanted.index].name;
    out += is_first ? "{\"name\": " : ", {\"name\": ";
    is_first = false;
    append_json_text(out, name);
    out += ", \"datatype\": \"";
    out += infer_datatype(tensor.dtype());
    out += "\", \"shape\": ";
    out += dims_text(tensor.shape());
    if (!wanted.binary) {
      append_data(out, name, tensor);
      continue;
    }
    has_binary = true;
    out += ", \"parameters\": {\"binary_data_size\": ";
    append_json_number(out, static_cast<std::int64_t>(binary_bytes(tensor)));
    out += "}}";
  }
  out += "]}";
  if (!has_binary) return answer;
  answer.header_length = out.size();
  for (const InferOutput& wanted : request.outputs)
    if (wanted.binary) append_binary(out, outputs[wanted.index]);
  return answer;
}

std::string infer_server_metadata(std::string_view cairn_version) {
  return str("{\"name\": \"cairn\", \"version\": ", json_quoted(cairn_version),
             ", \"extensions\": [\"binary_tensor_data\"]}");
}

std::string infer_model_metadata(const Signature& signature, std::span<const std::int64_t> versions,
                                 const std::string& more) {
  std::string numbers;
  for (const std::int64_t version : versions)
    numbers += str(numbers.empty() ? "\"" : ", \"", version, "\"");
  return str("{\"name\": ", json_quoted(signature.model), ", \"versions\": [", numbers,
             "], \"platform\": \"cairn\", \"inputs\": ", metadata_of(signature.input.columns),
             ", \"outputs\": ", metadata_of(signature.outputs), more, "}");
}

std::string infer_model_ready(std::string_view model, bool ready) {
  return str("{\"name\": ", json_quoted(model), ", \"ready\": ", ready ? "true" : "false", "}");
}

std::string infer_server_live(bool live) { return live ? "{\"live\": true}" : "{\"live\": false}"; }

// The specification names the key "live", and the servers that exist name it "ready".
std::string infer_server_ready(bool ready) {
  return ready ? "{\"live\": true, \"ready\": true}" : "{\"live\": false, \"ready\": false}";
}

}  // namespace cairn::serving
