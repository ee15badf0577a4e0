// Fully connected layers, and stacks of them.
//
// A layer is a name and options; its variables are made when it is first called, because only then
// the number of inputs is known. Calling it again uses the same variables.
//   Thread  one, as everything that records.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace cairn::nn {

// Any function of one array, such as relu, tanh, sigmoid or softmax of core/graph/ops.h, or one of
// your own. Empty: linear.
using Activation = std::function<Array(const Array&)>;

// The reference's arguments, with its defaults. The initial kernel is uniform in ±sqrt(6 / (inputs
// + units)) (Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural
// networks", AISTATS 2010).
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
  // The variables. InvalidArgument: the layer was not called in this scope yet.
  Variable kernel() const { return variables_.made(options_.name)[0]; }
  // InvalidArgument also: the layer has no bias.
  Variable bias() const;
  std::vector<Variable> variables() const { return variables_.made(options_.name); }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t inputs) const;
  DenseOptions options_;
  LayerVariables variables_;
};

// A stack of dense layers: the widths, and one activation for all of them. All begin from one seed;
// their names tell their initial values apart.
struct MlpOptions {
  std::vector<std::int64_t> units = {};  // of each layer; required
  Activation activation = {};            // default: relu
  bool last_linear = true;               // no activation after the last layer
  std::string name = "mlp";
  std::uint64_t seed = 0;
};

// Dense layers one after another, named NAME/dense_0, NAME/dense_1, ...: [b, n] -> [b,
// units.back()].
//   Errors  InvalidArgument: no units; otherwise those of Dense.
class Mlp {
 public:
  explicit Mlp(MlpOptions options);
  Array operator()(Array x) const;
  // From the first to the last.
  const std::vector<Dense>& layers() const { return layers_; }
  std::vector<Variable> variables() const;

 private:
  std::vector<Dense> layers_;
};

}  // namespace cairn::nn
