#include "model/writers/graph_def.h"

#include <variant>
#include <vector>

#include "core/graph/op_def.h"
#include "data/file/proto_message.h"

namespace cairn {
namespace {

constexpr int kProducer = 22;  // a version of GraphDef in which nothing is deprecated that we write

// DataType, by our dtype.
std::int64_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 1;
    case DType::kFloat64: return 2;
    case DType::kInt32: return 3;
    case DType::kUint8: return 4;
    case DType::kString: return 7;
    case DType::kInt64: return 9;
    case DType::kBool: return 10;
    case DType::kBfloat16: return 14;
    case DType::kFloat16: return 19;
  }
  return 0;
}

// TensorShapeProto; a size that is not known is -1 there too.
ProtoMessage shape_message(const Shape& shape) {
  ProtoMessage message;
  for (const std::int64_t size : shape.dims()) message.message(2, ProtoMessage().number(1, size));
  return message;
}

// AttrValue's fields: s 2, i 3, f 4, b 5, type 6; list 1, whose lists have the same numbers, and
// shape 7.
struct AttributeMessage {
  ProtoMessage operator()(std::int64_t v) const { return ProtoMessage().number(3, v); }
  ProtoMessage operator()(double v) const {
    return ProtoMessage().float32(4, static_cast<float>(v));
  }
  ProtoMessage operator()(bool v) const { return ProtoMessage().number(5, v ? 1 : 0); }
  ProtoMessage operator()(const std::string& v) const { return ProtoMessage().bytes(2, v); }
  ProtoMessage operator()(const std::vector<std::int64_t>& v) const {
    ProtoMessage list, packed;
    for (const std::int64_t each : v) packed.varint(static_cast<std::uint64_t>(each));
    list.message(3, packed);
    return ProtoMessage().message(1, list);
  }
  ProtoMessage operator()(const Tensor& v) const {
    return ProtoMessage().bytes(2, TensorType{v.dtype(), v.shape()}.to_string());
  }
  ProtoMessage operator()(const UpdateRule& v) const {
    return ProtoMessage().bytes(2, rule_name(v));
  }
};

ProtoMessage attribute_entry(std::string_view name, const ProtoMessage& value) {
  return ProtoMessage().bytes(1, name).message(2, value);
}

ProtoMessage shapes_of(const std::vector<TensorType>& outputs) {
  ProtoMessage list;
  for (const TensorType& output : outputs) list.message(7, shape_message(output.shape));
  return ProtoMessage().message(1, list);
}

// TensorFlow allows letters, digits and "_.\-/" in a node's name, and no other sign in front than
// a letter, a digit or a dot.
std::string allowed(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '/' && c != '.' && c != '-') c = '_';
  }
  if (text.empty() || text.front() == '_' || text.front() == '/' || text.front() == '-')
    text.insert(0, ".");
  return text;
}

std::string node_name(const Graph& graph, std::size_t at) {
  const Node& node = graph.nodes[at];
  const std::string own = str(node.op->name, "_", at);
  const std::int64_t variable = node.attributes.get_or<std::int64_t>("variable", -1);
  if (variable < 0 || variable >= static_cast<std::int64_t>(graph.variables.size())) return own;
  return str(allowed(graph.variables[static_cast<std::size_t>(variable)].name), "/", own);
}

std::string input_text(const std::vector<std::string>& names, ValueRef value) {
  const std::string& node = names[static_cast<std::size_t>(value.node)];
  return value.output == 0 ? node : str(node, ":", value.output);
}

ProtoMessage node_message(const Node& node, const std::vector<std::string>& names,
                          const std::string& name) {
  ProtoMessage message;
  message.bytes(1, name).bytes(2, node.op->name);
  for (const ValueRef& input : node.inputs) message.bytes(3, input_text(names, input));
  for (const auto& [attribute, value] : node.attributes.entries())
    message.message(5, attribute_entry(attribute, std::visit(AttributeMessage{}, value)));
  if (node.outputs.empty()) return message;
  const ProtoMessage dtype = ProtoMessage().number(6, data_type(node.outputs.front().dtype));
  message.message(5, attribute_entry("T", dtype));
  return message.message(5, attribute_entry("_output_shapes", shapes_of(node.outputs)));
}

}  // namespace

std::string graph_def(const Graph& graph) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) names.push_back(node_name(graph, i));
  ProtoMessage message;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    message.message(1, node_message(graph.nodes[i], names, names[i]));
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const bool named = i < graph.output_names.size() && !graph.output_names[i].empty();
    const std::string name = named ? graph.output_names[i] : std::to_string(i);
    message.message(1, ProtoMessage()
                           .bytes(1, str("outputs/", allowed(name)))
                           .bytes(2, "output")
                           .bytes(3, input_text(names, graph.outputs[i])));
  }
  return message.message(4, ProtoMessage().number(1, kProducer)).take();
}

}  // namespace cairn
