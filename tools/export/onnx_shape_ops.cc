// Operations that arrange elements and do not change them.
#include <algorithm>

#include "core/base/error.h"
#include "tools/export/onnx_ops.h"

namespace cairn::tools {

using Names = OnnxGraph::Names;
using Name = OnnxGraph::Name;

Name onnx_shape(OnnxGraph& out, const Name& x) { return out.add("Shape", {x}); }

Name onnx_size(OnnxGraph& out, const Name& x, std::int64_t axis) {
  return out.add("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}

Name onnx_slice(OnnxGraph& out, const Name& x, std::int64_t axis, std::int64_t begin,
                std::int64_t end) {
  return out.add("Slice", {x, out.list({begin}), out.list({end}), out.list({axis})});
}

Name onnx_filled(OnnxGraph& out, const Name& shape, DType dtype, double value) {
  Tensor one;
  switch (dtype) {
    case DType::kFloat32:
      one = Tensor::of<float>({1}, std::vector{static_cast<float>(value)});
      break;
    case DType::kInt32:
      one = Tensor::of<std::int32_t>({1}, std::vector{static_cast<std::int32_t>(value)});
      break;
    case DType::kInt64:
      one = Tensor::of<std::int64_t>({1}, std::vector{static_cast<std::int64_t>(value)});
      break;
    default:
      throw InvalidArgumentError(str("there are no values of ", dtype_name(dtype), " to fill it"));
  }
  return out.add("ConstantOfShape", {shape}, {{"value", one}});
}

namespace {

// A dimension of 0 means 0, and not the input's.
Names reshape(const OnnxNode& node) {
  const auto& shape = node.node.attributes.get<std::vector<std::int64_t>>("shape");
  const bool has_none = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return {node.out.add("Reshape", {node.in[0], node.out.list(shape)},
                       {{"allowzero", std::int64_t{has_none ? 1 : 0}}})};
}
Names reshape_like(const OnnxNode& node) {
  return {node.out.add("Reshape", {node.in[0], onnx_shape(node.out, node.in[1])},
                       {{"allowzero", std::int64_t{1}}})};
}
Names broadcast_like(const OnnxNode& node) {
  return {node.out.add("Expand", {node.in[0], onnx_shape(node.out, node.in[1])})};
}
Names transpose(const OnnxNode& node) {
  return {
      node.out.add("Transpose", node.in,
                   {{"perm", node.node.attributes.get<std::vector<std::int64_t>>("permutation")}})};
}
Names zeros_like(const OnnxNode& node) {
  return {onnx_filled(node.out, onnx_shape(node.out, node.in[0]), node.type(0).dtype, 0)};
}
Names ones_like(const OnnxNode& node) {
  return {onnx_filled(node.out, onnx_shape(node.out, node.in[0]), node.type(0).dtype, 1)};
}
Names dim_size(const OnnxNode& node) {
  const Name size = onnx_size(node.out, node.in[0], node.number("axis"));
  return {node.out.add("Squeeze", {size, node.out.list({0})})};
}
Names element_count(const OnnxNode& node) { return {node.out.add("Size", node.in)}; }

Names concat(const OnnxNode& node) {
  return {node.out.add("Concat", node.in, {{"axis", node.number("axis")}})};
}
Names stack(const OnnxNode& node) {
  const Name axis = node.out.list({node.number("axis")});
  Names parts;
  for (const Name& part : node.in) parts.push_back(node.out.add("Unsqueeze", {part, axis}));
  return {node.out.add("Concat", parts, {{"axis", node.number("axis")}})};
}
Names slice(const OnnxNode& node) {
  const std::int64_t begin = node.number("begin"), size = node.number("size");
  return {onnx_slice(node.out, node.in[0], node.number("axis"), begin,
                     size < 0 ? kOnnxToTheEnd : begin + size)};
}

Names pad(const OnnxNode& node) {
  const auto rank = static_cast<std::size_t>(node.type(0).shape.rank());
  const auto axis = static_cast<std::size_t>(node.number("axis"));
  std::vector<std::int64_t> pads(2 * rank);
  pads[axis] = node.number("before");
  pads[rank + axis] = node.number("after");
  return {node.out.add("Pad", {node.in[0], node.out.list(pads), node.in[1]})};
}
Names cumsum(const OnnxNode& node) {
  const auto flag = [&](std::string_view name) {
    return std::int64_t{node.node.attributes.get<bool>(name) ? 1 : 0};
  };
  return {node.out.add(
      "CumSum",
      {node.in[0], node.out.number(DType::kInt64, static_cast<double>(node.number("axis")))},
      {{"exclusive", flag("exclusive")}, {"reverse", flag("reverse")}})};
}

}  // namespace

std::vector<OnnxOp> onnx_shape_ops() {
  return {
      {"reshape", reshape},       {"reshape_like", reshape_like},
      {"transpose", transpose},   {"broadcast_like", broadcast_like},
      {"zeros_like", zeros_like}, {"ones_like", ones_like},
      {"dim_size", dim_size},     {"element_count", element_count},
      {"concat", concat},         {"stack", stack},
      {"slice", slice},           {"pad", pad},
      {"cumsum", cumsum},
  };
}

}  // namespace cairn::tools
