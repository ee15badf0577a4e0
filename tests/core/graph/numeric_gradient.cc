#include "tests/core/graph/numeric_gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn::testing {
namespace {

using Arrays = std::vector<Array>;

constexpr float kStep = 1e-2f;

std::vector<Tensor> run_graph(const ConcreteFunction& function, std::vector<Tensor> arguments) {
  Workspace workspace;
  LocalStore store;
  return run(make_plan(function.graph, {}), workspace, store, {}, std::move(arguments), {});
}

// Distinct weights, so that no two elements of the result are interchangeable.
Array weighted_sum(const Array& y) {
  Array flat = reshape(y, {-1});
  std::vector<float> weights;
  for (int i = 0; i < 64; ++i) weights.push_back(0.5f + 0.37f * static_cast<float>(i % 7));
  return reduce_sum(flat * slice(tensor({64}, weights), 0, 0, flat.shape()[0]));
}

TensorType signature_type(const Tensor& value, bool known) {
  TensorType type = value.type();
  if (!known && type.shape.rank() > 0) type.shape = type.shape.with_dim(0, Shape::kUnknown);
  return type;
}

bool differentiable(const Tensor& value) { return value.dtype() == DType::kFloat32; }

// Outputs: the loss, then a gradient for each float input. To weigh the result, its size is given.
ConcreteFunction traced_case(const GradientCase& of, bool known, const Shape& result) {
  std::vector<SignatureEntry> signature;
  for (const Tensor& input : of.inputs) signature.push_back(signature_type(input, known));
  return trace_function(signature, [&](const auto& in) {
    Arrays inputs, wrt;
    for (const auto& one : in) inputs.push_back(std::get<Array>(one));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (differentiable(of.inputs[i])) wrt.push_back(inputs[i]);
    Array loss = weighted_sum(reshape(of.op(inputs), result));
    Arrays outputs{loss};
    std::vector<Array> gradients = grad(loss, wrt);
    for (std::size_t i = 0; i < wrt.size(); ++i)
      outputs.push_back(gradients[i].defined() ? gradients[i] : zeros_like(wrt[i]));
    return outputs;
  });
}

Shape result_shape(const GradientCase& of) {
  Arrays constants(of.inputs.begin(), of.inputs.end());
  return of.op(constants).shape();
}

float loss_with(const ConcreteFunction& function, std::vector<Tensor> inputs, std::size_t which,
                std::size_t element, float change) {
  inputs[which] = inputs[which].clone();
  inputs[which].mutable_values<float>()[element] += change;
  return run_graph(function, std::move(inputs))[0].item<float>();
}

void check_case(const GradientCase& of, bool known) {
  SCOPED_TRACE(str(of.name, known ? ", known shapes" : ", unknown leading dimensions"));
  ConcreteFunction function = traced_case(of, known, result_shape(of));
  ASSERT_NO_THROW(parse_graph(function.bytes));
  std::vector<Tensor> outputs = run_graph(function, of.inputs);
  std::size_t next = 1;
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    if (!differentiable(of.inputs[i])) continue;
    const Tensor& gradient = outputs[next++];
    ASSERT_EQ(gradient.shape(), of.inputs[i].shape()) << "input " << i;
    for (std::size_t e = 0; e < static_cast<std::size_t>(gradient.elements()); ++e) {
      float above = loss_with(function, of.inputs, i, e, kStep),
            below = loss_with(function, of.inputs, i, e, -kStep);
      float difference = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient.values<float>()[e], difference, 2e-2f + 2e-2f * std::abs(difference))
          << "input " << i << ", element " << e;
    }
  }
}

}  // namespace

void check_gradients(const std::vector<GradientCase>& cases) {
  for (const GradientCase& one : cases)
    for (bool known : {true, false}) check_case(one, known);
}

Tensor values(Shape shape, std::uint64_t seed, float low, float high) {
  auto n = static_cast<std::size_t>(shape.elements());
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i)
    all[i] = low + (high - low) * (static_cast<float>(i) + 0.35f) / static_cast<float>(n);
  Random random(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return tensor(std::move(shape), all);
}
Tensor positive(Shape shape, std::uint64_t seed) {
  return values(std::move(shape), seed, 0.4f, 2.2f);
}

}  // namespace cairn::testing
