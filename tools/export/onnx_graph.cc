// The messages of onnx.proto, by their fields' numbers.
#include "tools/export/onnx_graph.h"

#include <cstring>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

// AttributeProto: name 1, f 2, i 3, s 4, t 5, ints 8, strings 9, type 20.
constexpr int kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kInts = 7, kStrings = 8;

ProtoMessage tensor_type(const Tensor& value, const std::string& name) {
  ProtoMessage message;
  for (const std::int64_t dim : value.shape().dims()) message.number(1, dim);
  message.number(2, onnx_type(value.dtype()));
  if (!name.empty()) message.bytes(8, name);
  return message;
}

// TensorProto: dims 1, data_type 2, string_data 6, name 8, raw_data 9, external_data 13,
// data_location 14.
ProtoMessage tensor_message(const Tensor& value, const std::string& name) {
  ProtoMessage message = tensor_type(value, name);
  if (value.dtype() == DType::kString)
    for (const std::string& each : value.string_values()) message.bytes(6, each);
  else
    message.bytes(9, {reinterpret_cast<const char*>(value.raw()), value.bytes()});
  return message;
}

struct ValueMessage {
  ProtoMessage& message;
  void operator()(std::int64_t v) const { message.number(3, v).number(20, kInt); }
  void operator()(float v) const { message.float32(2, v).number(20, kFloat); }
  void operator()(const std::string& v) const { message.bytes(4, v).number(20, kString); }
  void operator()(const std::vector<std::int64_t>& v) const {
    for (const std::int64_t each : v) message.number(8, each);
    message.number(20, kInts);
  }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& each : v) message.bytes(9, each);
    message.number(20, kStrings);
  }
  void operator()(const Tensor& v) const {
    message.message(5, tensor_message(v, "")).number(20, kTensor);
  }
};

// ValueInfoProto: name 1, type 2; TypeProto.tensor_type 1: elem_type 1, shape 2 of dims 1. A size
// that is not known is left out: two of them need not be equal.
ProtoMessage value_info(const std::string& name, const TensorType& type) {
  ProtoMessage shape, tensor;
  for (const std::int64_t dim : type.shape.dims()) {
    ProtoMessage size;
    if (dim != Shape::kUnknown) size.number(1, dim);
    shape.message(1, size);
  }
  tensor.number(1, onnx_type(type.dtype)).message(2, shape);
  return std::move(ProtoMessage().bytes(1, name).message(2, ProtoMessage().message(1, tensor)));
}

ProtoMessage entry(std::string_view key, std::string_view value) {
  return std::move(ProtoMessage().bytes(1, key).bytes(2, value));
}

template <typename T>
Tensor scalar_of(double value) {
  return Tensor::scalar<T>(static_cast<T>(value));
}

}  // namespace

std::int64_t onnx_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 1;
    case DType::kUint8: return 2;
    case DType::kInt32: return 6;
    case DType::kInt64: return 7;
    case DType::kString: return 8;
    case DType::kBool: return 9;
    case DType::kFloat16: return 10;
    case DType::kFloat64: return 11;
    case DType::kBfloat16: return 16;
  }
  return 0;
}

OnnxGraph::Name OnnxGraph::unique(std::string name) {
  std::string tried = name;
  for (int i = 1; !names_.insert(tried).second; ++i) tried = str(name, "_", i);
  return tried;
}

// NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7.
void OnnxGraph::add_node(std::string_view op, const Names& inputs, const Names& outputs,
                         const OnnxAttributes& attributes, std::string_view domain) {
  ProtoMessage node;
  for (const Name& input : inputs) node.bytes(1, input);
  for (const Name& output : outputs) node.bytes(2, output);
  node.bytes(3, outputs.front()).bytes(4, op);
  for (const auto& [name, value] : attributes) {
    ProtoMessage attribute;
    attribute.bytes(1, name);
    std::visit(ValueMessage{attribute}, value);
    node.message(5, attribute);
  }
  if (!domain.empty()) node.bytes(7, domain);
  graph_.message(1, node);
}

OnnxGraph::Name OnnxGraph::add(std::string_view op, const Names& inputs,
                               const OnnxAttributes& attributes, std::string_view domain) {
  Name output = unique(std::string(op));
  add_node(op, inputs, {output}, attributes, domain);
  return output;
}

OnnxGraph::Names OnnxGraph::add_several(std::string_view op, const Names& inputs,
                                        std::size_t outputs, const OnnxAttributes& attributes) {
  Names made;
  for (std::size_t i = 0; i < outputs; ++i) made.push_back(unique(std::string(op)));
  add_node(op, inputs, made, attributes, "");
  return made;
}

void OnnxGraph::add_named(std::string_view op, const Names& inputs, const Name& output) {
  add_node(op, inputs, {output}, {}, "");
}

OnnxGraph::Name OnnxGraph::constant(const Tensor& value) {
  Name name = unique("constant");
  graph_.message(5, tensor_message(value, name));
  return name;
}

OnnxGraph::Name OnnxGraph::list(const std::vector<std::int64_t>& values) {
  return constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
}

OnnxGraph::Name OnnxGraph::number(DType dtype, double value) {
  switch (dtype) {
    case DType::kInt32: return constant(scalar_of<std::int32_t>(value));
    case DType::kInt64: return constant(scalar_of<std::int64_t>(value));
    case DType::kUint8: return constant(scalar_of<std::uint8_t>(value));
    case DType::kBool: return constant(Tensor::scalar<bool>(value != 0));
    default: return constant(scalar_of<float>(value));
  }
}

void OnnxGraph::initializer(const Name& name, const TensorType& type, std::string_view bytes) {
  ProtoMessage tensor;
  for (const std::int64_t dim : type.shape.dims()) tensor.number(1, dim);
  graph_.message(5, tensor.number(2, onnx_type(type.dtype)).bytes(8, name).bytes(9, bytes));
}

void OnnxGraph::initializer(const Name& name, const TensorType& type, const OnnxPlace& place) {
  constexpr int kExternal = 1;
  ProtoMessage tensor;
  for (const std::int64_t dim : type.shape.dims()) tensor.number(1, dim);
  tensor.number(2, onnx_type(type.dtype)).bytes(8, name);
  tensor.message(13, entry("location", place.file))
      .message(13, entry("offset", std::to_string(place.offset)))
      .message(13, entry("length", std::to_string(place.bytes)))
      .number(14, kExternal);
  graph_.message(5, tensor);
}

void OnnxGraph::input(const Name& name, const TensorType& type) {
  graph_.message(11, value_info(name, type));
}
void OnnxGraph::output(const Name& name, const TensorType& type) {
  graph_.message(12, value_info(name, type));
}

// ModelProto: ir_version 1, producer_name 2, producer_version 3, graph 7, opset_import 8 (domain
// 1, version 2), metadata_props 14. GraphProto: node 1, name 2, initializer 5, input 11, output 12.
std::string OnnxGraph::model(
    const std::string& name, const std::string& producer_version,
    const std::vector<std::pair<std::string, std::string>>& metadata) const {
  ProtoMessage graph = graph_, model;
  graph.bytes(2, name);
  model.number(1, kOnnxIrVersion).bytes(2, "cairn").bytes(3, producer_version);
  model.message(8, ProtoMessage().bytes(1, "").number(2, kOnnxOpset));
  model.message(8, ProtoMessage().bytes(1, kOnnxMl).number(2, kOnnxMlOpset));
  for (const auto& [key, value] : metadata) model.message(14, entry(key, value));
  return model.message(7, graph).take();
}

}  // namespace cairn::tools
