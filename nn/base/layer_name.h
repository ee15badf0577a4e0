// Names of layers: chosen by the program, or given by the model that the layer is part of.
#pragma once
#include <map>
#include <memory>
#include <string>

namespace cairn::nn {

// The name of one layer, shared by its copies, which are the same layer.
//   Thread  one.
class LayerName {
 public:
  // `chosen` by the program, or empty. `kind` is what the layer is called otherwise.
  LayerName(std::string chosen, std::string kind);
  // The chosen name, the given one, or the kind if it has neither.
  const std::string& get() const;
  const std::string& kind() const { return state_->kind; }

 private:
  friend class LayerNames;
  struct State {
    std::string name, kind;
    bool chosen = false;
  };
  std::shared_ptr<State> state_;
};

// The names within one model. Layers without a chosen name are called by their kind: dense,
// dense_1, dense_2, ... as in the reference.
class LayerNames {
 public:
  // Notes the name that a layer has, so that no other is given it.
  //   Errors  InvalidArgument: two layers chose the same name.
  void take(const LayerName& layer);
  // Names the layer, unless it has a name already.
  void give(const LayerName& layer);

 private:
  std::map<std::string, std::shared_ptr<LayerName::State>> taken_;
  std::map<std::string, int> next_;  // by kind
};

}  // namespace cairn::nn
