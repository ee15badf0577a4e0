// Operations element by element.
#include "core/base/error.h"
#include "tools/export/onnx_ops.h"

namespace cairn::tools {
namespace {

using Names = OnnxGraph::Names;
using Name = OnnxGraph::Name;

// The operator that is the same under another name.
#define CAIRN_ONNX_SAME(name, op)                                                   \
  OnnxOp {                                                                          \
    name, [](const OnnxNode& node) -> Names { return {node.out.add(op, node.in)}; } \
  }

Name one_of(const OnnxNode& node) { return node.out.number(DType::kFloat32, 1); }

// tanh(x / 2) (e^x + 1), which keeps its digits near 0.
Names expm1(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const Name half = out.add("Mul", {node.in[0], out.number(DType::kFloat32, 0.5)});
  const Name above = out.add("Add", {out.add("Exp", node.in), one_of(node)});
  return {out.add("Mul", {out.add("Tanh", {half}), above})};
}

// log(u) x / (u - 1) with u the rounded 1 + x, which keeps its digits near 0 (Goldberg 1991,
// theorem 4). Where u is 1 that is x, and log(u) where x is large.
Names log1p(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  const Name& x = node.in[0];
  const Name one = one_of(node), u = out.add("Add", {x, one}), log = out.add("Log", {u});
  const Name tiny = out.add("Equal", {u, one});
  const Name large = out.add("Greater", {x, out.number(DType::kFloat32, 1e8)});
  const Name below = out.add("Where", {tiny, one, out.add("Sub", {u, one})});
  const Name quotient = out.add("Div", {out.add("Mul", {log, x}), below});
  return {out.add("Where", {tiny, x, out.add("Where", {large, log, quotient})})};
}

Names rsqrt(const OnnxNode& node) {
  return {node.out.add("Reciprocal", {node.out.add("Sqrt", node.in)})};
}
Names square(const OnnxNode& node) { return {node.out.add("Mul", {node.in[0], node.in[0]})}; }
Names erfc(const OnnxNode& node) {
  return {node.out.add("Sub", {one_of(node), node.out.add("Erf", node.in)})};
}
Names is_finite(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  return {out.add("Not", {out.add("Or", {out.add("IsNaN", node.in), out.add("IsInf", node.in)})})};
}

Names cast(const OnnxNode& node) {
  return {node.out.add("Cast", node.in, {{"to", onnx_type(node.node.outputs[0].dtype)}})};
}

// The value alone: what ends a step, or waits, is not part of it.
Names passed_on(const OnnxNode& node) { return {node.out.add("Identity", {node.in[0]})}; }

Names not_equal(const OnnxNode& node) {
  return {node.out.add("Not", {node.out.add("Equal", node.in)})};
}

void want_numbers(const OnnxNode& node) {
  if (node.type(0).dtype == DType::kString)
    throw InvalidArgumentError("its operator compares no strings");
}
Names equal_numbers(const OnnxNode& node) {
  want_numbers(node);
  return {node.out.add("Equal", node.in)};
}
Names not_equal_numbers(const OnnxNode& node) {
  want_numbers(node);
  return not_equal(node);
}

// The remainder has the sign of the divisor, of floats as of integers.
Names floor_mod(const OnnxNode& node) {
  OnnxGraph& out = node.out;
  if (node.type(0).dtype != DType::kFloat32) return {out.add("Mod", node.in)};
  const Name zero = out.number(DType::kFloat32, 0);
  const Name rest = out.add("Mod", node.in, {{"fmod", std::int64_t{1}}});
  const Name is_none = out.add("Equal", {rest, zero});
  const Name differ =
      out.add("Xor", {out.add("Less", {rest, zero}), out.add("Less", {node.in[1], zero})});
  const Name turned = out.add("And", {differ, out.add("Not", {is_none})});
  return {out.add("Where", {turned, out.add("Add", {rest, node.in[1]}), rest})};
}

}  // namespace

std::vector<OnnxOp> onnx_elementwise_ops() {
  return {
      CAIRN_ONNX_SAME("neg", "Neg"),
      CAIRN_ONNX_SAME("abs", "Abs"),
      CAIRN_ONNX_SAME("exp", "Exp"),
      {"expm1", expm1},
      CAIRN_ONNX_SAME("log", "Log"),
      {"log1p", log1p},
      CAIRN_ONNX_SAME("sqrt", "Sqrt"),
      {"rsqrt", rsqrt},
      {"square", square},
      CAIRN_ONNX_SAME("reciprocal", "Reciprocal"),
      CAIRN_ONNX_SAME("sigmoid", "Sigmoid"),
      CAIRN_ONNX_SAME("tanh", "Tanh"),
      CAIRN_ONNX_SAME("relu", "Relu"),
      CAIRN_ONNX_SAME("softplus", "Softplus"),
      CAIRN_ONNX_SAME("sin", "Sin"),
      CAIRN_ONNX_SAME("cos", "Cos"),
      CAIRN_ONNX_SAME("erf", "Erf"),
      {"erfc", erfc},
      CAIRN_ONNX_SAME("sign", "Sign"),
      CAIRN_ONNX_SAME("floor", "Floor"),
      CAIRN_ONNX_SAME("ceil", "Ceil"),
      CAIRN_ONNX_SAME("round", "Round"),
      {"is_finite", is_finite},
      CAIRN_ONNX_SAME("logical_not", "Not"),
      {"cast", cast},
      {"stop_gradient", passed_on},
      {"check_numerics", passed_on},
      {"check_range", passed_on},
      {"after", passed_on},
      CAIRN_ONNX_SAME("add", "Add"),
      CAIRN_ONNX_SAME("sub", "Sub"),
      CAIRN_ONNX_SAME("mul", "Mul"),
      CAIRN_ONNX_SAME("div", "Div"),
      {"floor_mod", floor_mod},
      CAIRN_ONNX_SAME("maximum", "Max"),
      CAIRN_ONNX_SAME("minimum", "Min"),
      CAIRN_ONNX_SAME("pow", "Pow"),
      {"equal", equal_numbers},
      {"not_equal", not_equal_numbers},
      CAIRN_ONNX_SAME("less", "Less"),
      CAIRN_ONNX_SAME("less_equal", "LessOrEqual"),
      CAIRN_ONNX_SAME("greater", "Greater"),
      CAIRN_ONNX_SAME("greater_equal", "GreaterOrEqual"),
      CAIRN_ONNX_SAME("logical_and", "And"),
      CAIRN_ONNX_SAME("logical_or", "Or"),
      CAIRN_ONNX_SAME("where", "Where"),
  };
}

OnnxRule onnx_rule(std::string_view op) {
  static const std::vector<OnnxOp> kAll = [] {
    std::vector<OnnxOp> all = onnx_elementwise_ops();
    for (const auto& part : {onnx_shape_ops(), onnx_row_ops(), onnx_layer_ops()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  for (const OnnxOp& each : kAll)
    if (each.name == op) return each.rule;
  return nullptr;
}

}  // namespace cairn::tools
