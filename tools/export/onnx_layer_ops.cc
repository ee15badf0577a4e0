// Matrix products, reductions, normalisation and windows over images.
#include "core/base/error.h"
#include "tools/export/onnx_ops.h"

namespace cairn::tools {
namespace {

using Names = OnnxGraph::Names;
using Name = OnnxGraph::Name;
using Numbers = std::vector<std::int64_t>;

// A matrix, or a batch of them.
Names product(const OnnxNode& node) {
  const Numbers turned = node.type(0).shape.rank() == 2 ? Numbers{1, 0} : Numbers{0, 2, 1};
  Names factors = node.in;
  for (std::size_t i = 0; i < 2; ++i)
    if (node.node.attributes.get<bool>(i == 0 ? "transpose_a" : "transpose_b"))
      factors[i] = node.out.add("Transpose", {factors[i]}, {{"perm", turned}});
  return {node.out.add("MatMul", factors)};
}

Names reduced(const OnnxNode& node, std::string_view op) {
  const auto& axes = node.node.attributes.get<Numbers>("axes");
  const bool keeps = node.node.attributes.get<bool>("keep_dims");
  Names inputs = node.in;
  if (!axes.empty()) inputs.push_back(node.out.list(axes));  // none: all of them
  return {node.out.add(op, inputs, {{"keepdims", std::int64_t{keeps ? 1 : 0}}})};
}
Names reduce_sum(const OnnxNode& node) { return reduced(node, "ReduceSum"); }
Names reduce_mean(const OnnxNode& node) { return reduced(node, "ReduceMean"); }
Names reduce_max(const OnnxNode& node) { return reduced(node, "ReduceMax"); }
Names reduce_min(const OnnxNode& node) { return reduced(node, "ReduceMin"); }
Names reduce_prod(const OnnxNode& node) { return reduced(node, "ReduceProd"); }

Names softmax(const OnnxNode& node) {
  return {node.out.add("Softmax", node.in, {{"axis", std::int64_t{-1}}})};
}
Names log_softmax(const OnnxNode& node) {
  return {node.out.add("LogSoftmax", node.in, {{"axis", std::int64_t{-1}}})};
}

// (x - mean) / sqrt(variance + epsilon) gamma + beta, then mean and variance, over these axes.
Names normalised(const OnnxNode& node, const Numbers& axes) {
  OnnxGraph& out = node.out;
  const Name over = out.list(axes);
  const auto mean_of = [&](const Name& x, std::int64_t keeps) {
    return out.add("ReduceMean", {x, over}, {{"keepdims", keeps}});
  };
  const Name centred = out.add("Sub", {node.in[0], mean_of(node.in[0], 1)});
  const Name variance = mean_of(out.add("Mul", {centred, centred}), 1);
  const Name epsilon = out.number(DType::kFloat32, node.node.attributes.get<double>("epsilon"));
  const Name scaled =
      out.add("Div", {centred, out.add("Sqrt", {out.add("Add", {variance, epsilon})})});
  const Name y = out.add("Add", {out.add("Mul", {scaled, node.in[1]}), node.in[2]});
  return {y, mean_of(node.in[0], 0), out.add("Squeeze", {variance, over})};
}
Names layer_norm(const OnnxNode& node) { return normalised(node, {-1}); }
Names batch_norm(const OnnxNode& node) {
  Numbers axes;
  for (std::int64_t i = 0; i + 1 < node.type(0).shape.rank(); ++i) axes.push_back(i);
  if (axes.empty()) throw InvalidArgumentError("it has no axis to normalise over");
  return normalised(node, axes);
}

// ---- images: [batch, height, width, channels] here, channels before height in ONNX ----

Name channels_first(OnnxGraph& out, const Name& image) {
  return out.add("Transpose", {image}, {{"perm", Numbers{0, 3, 1, 2}}});
}
Name channels_last(OnnxGraph& out, const Name& image) {
  return out.add("Transpose", {image}, {{"perm", Numbers{0, 2, 3, 1}}});
}

OnnxAttributes window_of(const OnnxNode& node) {
  const bool same = node.node.attributes.get<std::string>("padding") == "SAME";
  return {{"auto_pad", std::string(same ? "SAME_UPPER" : "VALID")},
          {"strides", node.node.attributes.get<Numbers>("strides")}};
}

Names conv2d(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  OnnxAttributes attributes = window_of(node);
  attributes.emplace_back("dilations", node.node.attributes.get<Numbers>("dilations"));
  const Name filter = out.add("Transpose", {node.in[1]}, {{"perm", Numbers{3, 2, 0, 1}}});
  return {
      channels_last(out, out.add("Conv", {channels_first(out, node.in[0]), filter}, attributes))};
}

Names pooled(const OnnxNode& node, std::string_view op) {
  OnnxAttributes attributes = window_of(node);
  attributes.emplace_back("kernel_shape", node.node.attributes.get<Numbers>("window"));
  return {channels_last(node.out,
                        node.out.add(op, {channels_first(node.out, node.in[0])}, attributes))};
}
Names max_pool2d(const OnnxNode& node) { return pooled(node, "MaxPool"); }
Names avg_pool2d(const OnnxNode& node) { return pooled(node, "AveragePool"); }

}  // namespace

std::vector<OnnxOp> onnx_layer_ops() {
  return {
      {"matmul", product},          {"batch_matmul", product},  {"reduce_sum", reduce_sum},
      {"reduce_mean", reduce_mean}, {"reduce_max", reduce_max}, {"reduce_min", reduce_min},
      {"reduce_prod", reduce_prod}, {"softmax", softmax},       {"log_softmax", log_softmax},
      {"layer_norm", layer_norm},   {"batch_norm", batch_norm}, {"conv2d", conv2d},
      {"max_pool2d", max_pool2d},   {"avg_pool2d", avg_pool2d},
  };
}

}  // namespace cairn::tools
