// OnnxRule: how an operation of a graph (core/graph/ops.h) is made of ONNX's operators.
//   Thread  one.
#pragma once
#include <string_view>

#include "core/graph/graph.h"
#include "tools/export/onnx_graph.h"

namespace cairn::tools {

// A node and the names of its inputs' values.
struct OnnxNode {
  const Graph& graph;
  const Node& node;
  OnnxGraph::Names in;
  OnnxGraph& out;

  const TensorType& type(std::size_t input) const { return graph.type(node.inputs[input]); }
  std::int64_t number(std::string_view attribute) const {
    return node.attributes.get<std::int64_t>(attribute);
  }
};

// Adds what computes the node; the names of its outputs.
//   Errors  InvalidArgument: ONNX cannot express this use of it; says why.
using OnnxRule = OnnxGraph::Names (*)(const OnnxNode& node);
struct OnnxOp {
  std::string_view name;
  OnnxRule rule;
};
// nullptr: there is nothing for this operation.
OnnxRule onnx_rule(std::string_view op);

// A part of the table each.
std::vector<OnnxOp> onnx_elementwise_ops();
std::vector<OnnxOp> onnx_shape_ops();
std::vector<OnnxOp> onnx_row_ops();
std::vector<OnnxOp> onnx_layer_ops();

// ---- pieces that several of them use ----

// int64 [rank], or, of one axis, [1].
OnnxGraph::Name onnx_shape(OnnxGraph& out, const OnnxGraph::Name& x);
OnnxGraph::Name onnx_size(OnnxGraph& out, const OnnxGraph::Name& x, std::int64_t axis);
// x[begin:end] along an axis; `end` below 0 counts from the end.
OnnxGraph::Name onnx_slice(OnnxGraph& out, const OnnxGraph::Name& x, std::int64_t axis,
                           std::int64_t begin, std::int64_t end);
// `value` in every element, of a shape that is computed.
OnnxGraph::Name onnx_filled(OnnxGraph& out, const OnnxGraph::Name& shape, DType dtype,
                            double value);
inline constexpr std::int64_t kOnnxToTheEnd = INT64_MAX;

}  // namespace cairn::tools
