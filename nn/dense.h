// Fully connected layers.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace cairn::nn {

// Any function of core/graph/ops.h on one array: relu, tanh, sigmoid, softmax, ... Empty: linear.
using Activation = std::function<Array(const Array&)>;

struct DenseOptions {
  std::int64_t units = 0;  // required
  Activation activation = {};
  bool use_bias = true;
  std::optional<Initializer> kernel_initializer = {};  // default: Glorot uniform
  Initializer bias_initializer = {};                   // zeros
  std::string name = "dense";
  std::uint64_t seed = 0;  // of the default kernel
};

// activation(x · kernel + bias): [..., n] -> [..., units], x of rank 2. Variables NAME/kernel [n,
// units] and NAME/bias [units].
//   Errors  InvalidArgument: units below 1; x not [batch, n] with n known, or not float32.
class Dense {
 public:
  explicit Dense(DenseOptions options);
  Array operator()(const Array& x) const;
  Variable kernel() const { return variables_.made(options_.name)[0]; }
  Variable bias() const;  // InvalidArgument: it has none
  std::vector<Variable> variables() const { return variables_.made(options_.name); }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t inputs) const;
  DenseOptions options_;
  LayerVariables variables_;
};

struct MlpOptions {
  std::vector<std::int64_t> units = {};  // of each layer; required
  Activation activation = {};            // default: relu
  bool last_linear = true;               // no activation after the last layer
  std::string name = "mlp";
  std::uint64_t seed = 0;
};

// Dense layers one after another, named NAME/dense_0, NAME/dense_1, ...: [b, n] -> [b,
// units.back()].
class Mlp {
 public:
  explicit Mlp(MlpOptions options);
  Array operator()(Array x) const;
  const std::vector<Dense>& layers() const { return layers_; }
  std::vector<Variable> variables() const;

 private:
  std::vector<Dense> layers_;
};

}  // namespace cairn::nn
