// GRU: a recurrent layer, unrolled over a known number of time steps.
//   Source  Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nn/base/initializers.h"
#include "nn/base/layer.h"
#include "nn/base/layer_name.h"
#include "nn/layers/activations.h"
#include "nn/layers/regularizers.h"

namespace cairn::nn {

// The reference's arguments, with its defaults.
struct GRUOptions {
  std::int64_t units = 0;         // required
  bool return_sequences = false;  // the state after every step instead of after the last one
  bool go_backwards = false;      // from the last step to the first, and results in that order
  Activation activation = {};     // default: tanh
  Activation recurrent_activation = {};  // default: sigmoid
  bool use_bias = true;
  KernelInitializer kernel_initializer = {};     // default: Glorot uniform
  KernelInitializer recurrent_initializer = {};  // default: orthogonal()
  Initializer bias_initializer = {};             // zeros
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string name = "";   // "gru", or as the model names it
  std::uint64_t seed = 0;  // of the initial kernels
};

// [b, t, n] -> [b, units], or [b, t, units] with return_sequences. With gates z and r and state h,
// columns of the kernels in the order z, r, candidate:
//   z = σ(x Kz + h Rz + ...)   r = σ(x Kr + h Rr + ...)
//   c = tanh(x Kc + b0c + r · (h Rc + b1c))   h' = z · h + (1 - z) · c
// The reset gate comes after the product, as in the reference's default (reset_after). Variables
// NAME/kernel [n, 3 units], NAME/recurrent_kernel [units, 3 units] and NAME/bias [2, 3 units], the
// second row for what is recurrent.
//   Errors  InvalidArgument: units below 1; x not float32 [batch, time, n] with time, at least 1,
//           and n known; an initial state that is not float32 [batch, units].
//   Cost    a function has some 15 operations per time step.
class GRU {
 public:
  explicit GRU(GRUOptions options);
  Array operator()(const Array& x) const { return (*this)(x, {}); }
  // The same from a state [b, units] on; undefined: zeros.
  Array operator()(const Array& x, const Array& initial_state) const;
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t inputs) const;
  void check_input(const Array& x, const Array& initial_state) const;
  // The state after a step: `inputs` and `recurrent` are the products [b, 3 units].
  Array next(const Array& state, const Array& inputs, const Array& recurrent) const;

  GRUOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

}  // namespace cairn::nn
