// Fully connected layers, and stacks of them.
//
// A layer is a name and options; its variables are made when it is first called, because only then
// the number of inputs is known. Calling it again uses the same variables.
//   Thread  one, as everything that records.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/base/initializers.h"
#include "nn/base/layer.h"
#include "nn/base/layer_name.h"
#include "nn/layers/activations.h"
#include "nn/layers/regularizers.h"

namespace cairn::nn {

// The reference's arguments, with its defaults. The initial kernel is uniform in ±sqrt(6 / (inputs
// + units)) (Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural
// networks", AISTATS 2010).
struct DenseOptions {
  std::int64_t units = 0;  // required
  Activation activation = {};
  bool use_bias = true;
  KernelInitializer kernel_initializer = {};  // default: Glorot uniform
  Initializer bias_initializer = {};          // zeros
  std::string name = "";                      // "dense", or as the model names it
  std::uint64_t seed = 0;                     // of kernel_initializer, if that is a rule
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the size of the batch
};

// activation(x · kernel + bias): [..., n] -> [..., units], x of rank 2 and above. Variables
// NAME/kernel [n, units] and NAME/bias [units].
//   Errors  InvalidArgument: units below 1; x not float32 [batch, ..., n] with all dimensions known
//           but the batch's.
class Dense {
 public:
  explicit Dense(DenseOptions options);
  Array operator()(const Array& x) const;
  // The variables. InvalidArgument: the layer was not called in this scope yet.
  Variable kernel() const { return variables_.made(name_.get())[0]; }
  // InvalidArgument also: the layer has no bias.
  Variable bias() const;
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t inputs) const;
  void check_input(const Array& x) const;
  DenseOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

// A stack of dense layers: the widths, and one activation for all of them. All begin from one seed;
// their names tell their initial values apart.
struct MlpOptions {
  std::vector<std::int64_t> units = {};  // of each layer; required
  Activation activation = {};            // default: relu
  bool last_linear = true;               // no activation after the last layer
  std::string name = "";                 // "mlp", or as the model names it
  std::uint64_t seed = 0;
};

// Dense layers one after another, named NAME/dense_0, NAME/dense_1, ...: [..., n] -> [...,
// units.back()].
//   Errors  InvalidArgument: no units; otherwise those of Dense.
class Mlp {
 public:
  explicit Mlp(MlpOptions options);
  Array operator()(Array x) const;
  // From the first to the last. They are made, and their names fixed, when they are first asked for
  // or called.
  const std::vector<Dense>& layers() const;
  std::vector<Variable> variables() const;
  const LayerName& layer_name() const { return name_; }

 private:
  MlpOptions options_;
  LayerName name_;
  std::shared_ptr<std::vector<Dense>> layers_ = std::make_shared<std::vector<Dense>>();
};

}  // namespace cairn::nn
