// The variables of layers: they are made at the first call, in whatever scope is open then. A
// strategy opens a scope while it traces a function, so a layer makes its variables on the cluster
// without knowing one.
//
// A layer of a program's own is anything that can be called with an Array. What it learns it keeps
// in a LayerVariables:
//
//   struct Scale {
//     nn::LayerVariables variables = {};
//     Array operator()(const Array& x) const {
//       return x * variables.in_scope([&](VariableCreator& strategy) {
//         return std::vector<Variable>{strategy.create_variable(
//             {.name = "scale", .shape = {x.shape()[1]},
//              .initializer = Initializer::constant(1)})};
//       })[0];
//     }
//   };
//
// examples/custom_layer.cc has one, with a loss, a metric and an update rule of its own.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/variable.h"

namespace cairn::nn {

// The variables of one layer, one set for each creator (strategy) that the layer is used with.
// Copies of a layer hold the same object and so mean the same layer.
//   Lifetime  Creators are distinguished by address: once a strategy is gone, the layers that were
//             used with it must go too.
//   Thread    one.
class LayerVariables {
 public:
  using Make = std::function<std::vector<Variable>(VariableCreator&)>;

  LayerVariables();
  // The set of the creator in scope; `make` makes it the first time.
  const std::vector<Variable>& in_scope(const Make& make) const;
  // The same, without making one.
  //   Errors  InvalidArgument: `layer` was never called in this scope.
  const std::vector<Variable>& made(const std::string& layer) const;

 private:
  struct Sets;
  std::shared_ptr<Sets> sets_;
};

// [b, 1] and [b] both mean one number per example: -> [b].
//   Errors  InvalidArgument, naming `what` and its shape: it is anything else.
Array per_example(const Array& x, const std::string& what);
// The array as float32.
Array to_float(const Array& x);

}  // namespace cairn::nn
