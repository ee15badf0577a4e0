// Activations: functions of one array, by name as the reference has them.
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/graph/array.h"

namespace cairn::nn {

// Any function of one array, such as relu, tanh, sigmoid or softmax of core/graph/ops.h, one of
// your own, or a name: {.activation = "relu"}. Empty: linear.
//   Errors  InvalidArgument: there is no activation of that name; the message names the nearest.
class Activation {
 public:
  Activation() = default;
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, Activation> &&
           std::is_invocable_r_v<Array, F&, const Array&>) Activation(F function)
      : function_(std::move(function)) {}  // NOLINT(google-explicit-constructor)
  Activation(const char* name);            // NOLINT(google-explicit-constructor)
  Activation(const std::string& name)      // NOLINT(google-explicit-constructor)
      : Activation(name.c_str()) {}

  explicit operator bool() const { return static_cast<bool>(function_); }
  // x itself if it is empty.
  Array operator()(const Array& x) const { return function_ ? function_(x) : x; }

 private:
  std::function<Array(const Array&)> function_;
};

// The activation of that name: elu, exponential, gelu, hard_sigmoid, leaky_relu, linear, relu,
// relu6, selu, sigmoid, softmax, softplus, softsign, swish (also silu), tanh.
//   Errors  as above.
Activation activation(const std::string& name);

}  // namespace cairn::nn
