// Shared by the tests of the graph side.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/graph.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/variable.h"

namespace cairn::testing {

inline const Array& arg(const std::vector<TraceArgument>& arguments, std::size_t i) {
  return std::get<Array>(arguments[i]);
}

inline Variable make_variable(const std::string& name, Shape shape, DType dtype = DType::kFloat32) {
  VariableSpec spec;
  spec.name = name;
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  return Variable(std::make_shared<const VariableSpec>(std::move(spec)));
}

inline TensorType floats(Shape shape) { return {DType::kFloat32, std::move(shape)}; }
inline TensorType ints(Shape shape) { return {DType::kInt64, std::move(shape)}; }
inline constexpr std::int64_t kAny = Shape::kUnknown;

// The function of arguments of these types.
template <typename F>
ConcreteFunction trace_function(const std::vector<SignatureEntry>& signature, F body) {
  return trace(
      [&](const std::vector<TraceArgument>& arguments) {
        return detail::to_outputs(body(arguments));
      },
      signature);
}

inline std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.emplace_back(node.op->name);
  return names;
}

inline std::int64_t count_ops(const Graph& graph, std::string_view name) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op->name == name; });
}

inline Tensor tensor(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(std::move(shape), values);
}
inline Tensor ids_of(const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

// The message of the InvalidArgumentError (or another class E) that `act` throws; "nothing was
// thrown" otherwise.
template <typename E = InvalidArgumentError, typename F>
std::string message_of(F act) {
  try {
    act();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace cairn::testing
