// Sequential: layers one after another, the reference's simplest kind of model.
//
//   nn::Sequential network({nn::Conv2D({.filters = 8, .kernel_size = {3, 3}}), relu, nn::Flatten(),
//                           nn::Dense({.units = 10})});
//   Array logits = network(images);
//
//   Thread  one, as everything that records.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/layers.h"

namespace cairn::nn {

// A layer itself, so models can be made of models. Copies are the same model.
//   Names   The first call names the layers that have no name of their choice: dense, dense_1, ...
//           by kind, counted through all layers of the outermost model.
//   Errors  InvalidArgument: no layer; two layers that chose the same name (both when called). Else
//           those of the layers.
class Sequential {
 public:
  Sequential() : Sequential(std::vector<Layer>{}) {}
  explicit Sequential(std::vector<Layer> layers, std::string name = "");
  // Appends a layer.
  void add(Layer layer) const;

  Array operator()(const Array& x) const;
  // In order of the layers; of one that occurs twice once.
  //   Errors  InvalidArgument: it was not called in this scope yet.
  std::vector<Variable> variables() const;
  const std::vector<Layer>& layers() const { return *layers_; }
  // One line per layer, a model within as one.
  std::vector<LayerSummary> summary() const;
  const LayerName& layer_name() const { return name_; }

 private:
  LayerName name_;
  std::shared_ptr<std::vector<Layer>> layers_;
};

}  // namespace cairn::nn
