// MMoE: several tasks that learn from one another as far as it helps them.
//   Source  Ma et al., "Modeling task relationships in multi-task learning with multi-gate
//           mixture-of-experts", KDD 2018.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/dense.h"

namespace cairn::nn {

struct MMoEOptions {
  int tasks = 0;                                // required
  int experts = 0;                              // required
  std::vector<std::int64_t> expert_units = {};  // required: widths of each expert's layers
  std::vector<std::int64_t> tower_units = {};   // of each task's own layers; empty: it has none
  Activation activation = {};                   // of all but the towers' last layers; default: relu
  std::string name = "";                        // "mmoe", or as the program names it
  std::uint64_t seed = 0;
};

// Each task mixes the experts' results by weights of its own, softmax(x · gate), and puts the
// mixture through its tower: [b, n] -> for each task [b, tower_units.back()], or [b,
// expert_units.back()] without towers. Parts NAME/expert_0, ..., NAME/gate_0, ..., which have no
// bias, and NAME/tower_0, ...
//   Errors  InvalidArgument: tasks or experts below 1, no expert_units, widths below 1; else those
//           of Dense.
class MMoE {
 public:
  explicit MMoE(MMoEOptions options);
  std::vector<Array> operator()(const Array& x) const;
  // Experts', gates', towers'. InvalidArgument: it was not called in this scope yet.
  std::vector<Variable> variables() const;
  const LayerName& layer_name() const { return name_; }

 private:
  struct Parts {
    std::vector<Mlp> experts, towers;
    std::vector<Dense> gates;
  };
  LayerName name_;
  Parts parts_;
};

}  // namespace cairn::nn
