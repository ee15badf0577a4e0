#include "nn/layers/activations.h"

#include <map>

#include "core/graph/ops.h"
#include "nn/base/names.h"

namespace cairn::nn {
namespace {

using Function = Array (*)(const Array&);

// The reference's piecewise linear stand-in for the sigmoid: 0 below -2.5 and 1 above 2.5.
Array hard_sigmoid(const Array& x) {
  return minimum(maximum(x * Array(0.2f) + Array(0.5f), Array(0.0f)), Array(1.0f));
}

const std::map<std::string, Function>& activations() {
  static const std::map<std::string, Function> all{
      {"elu", [](const Array& x) { return elu(x); }},
      {"exponential", [](const Array& x) { return exp(x); }},
      {"gelu", [](const Array& x) { return gelu(x); }},
      {"hard_sigmoid", hard_sigmoid},
      {"leaky_relu", [](const Array& x) { return leaky_relu(x); }},
      {"linear", [](const Array& x) { return x; }},
      {"relu", [](const Array& x) { return relu(x); }},
      {"relu6", [](const Array& x) { return relu6(x); }},
      {"selu", [](const Array& x) { return selu(x); }},
      {"sigmoid", [](const Array& x) { return sigmoid(x); }},
      {"silu", [](const Array& x) { return swish(x); }},
      {"softmax", [](const Array& x) { return softmax(x); }},
      {"softplus", [](const Array& x) { return softplus(x); }},
      {"softsign", [](const Array& x) { return x / (abs(x) + Array(1.0f)); }},
      {"swish", [](const Array& x) { return swish(x); }},
      {"tanh", [](const Array& x) { return tanh(x); }},
  };
  return all;
}

}  // namespace

// "linear" is the empty one, so that a layer without an activation records nothing for it.
Activation::Activation(const char* name) {
  const Function found = find_named(activations(), "activation", name);
  if (std::string(name) != "linear") function_ = found;
}

Activation activation(const std::string& name) { return Activation(name); }

}  // namespace cairn::nn
