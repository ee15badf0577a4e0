#include "nn/layers/sequential.h"

#include <set>
#include <utility>

#include "core/base/error.h"

namespace cairn::nn {

Sequential::Sequential(std::vector<Layer> layers, std::string name)
    : name_(std::move(name), "sequential"),
      layers_(std::make_shared<std::vector<Layer>>(std::move(layers))) {}

void Sequential::add(Layer layer) const { layers_->push_back(std::move(layer)); }

// Within another model all names are there already, and naming finds nothing to do.
Array Sequential::operator()(const Array& x) const {
  if (layers_->empty())
    throw InvalidArgumentError(str("model \"", name_.get(), "\" has no layer to call"));
  name_layers(*layers_);
  Array y = x;
  for (const Layer& layer : *layers_) y = layer(y);
  return y;
}

std::vector<Variable> Sequential::variables() const {
  std::vector<Variable> all;
  std::set<const VariableSpec*> seen;
  for (const Layer& layer : *layers_)
    for (const Variable& variable : layer.variables())
      if (seen.insert(variable.shared_spec().get()).second) all.push_back(variable);
  return all;
}

std::vector<LayerSummary> Sequential::summary() const {
  name_layers(*layers_);
  std::vector<LayerSummary> lines;
  for (const Layer& layer : *layers_) lines.push_back(layer.summary());
  return lines;
}

}  // namespace cairn::nn
