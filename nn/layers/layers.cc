#include "nn/layers/layers.h"

#include "core/base/error.h"

namespace cairn::nn {
namespace {

void take_names(LayerNames& names, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    names.take(layer.layer_name());
    take_names(names, layer.layers());
  }
}

void give_names(LayerNames& names, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    names.give(layer.layer_name());
    give_names(names, layer.layers());
  }
}

}  // namespace

Layer::Layer(std::string name, std::function<Array(const Array&)> call)
    : Layer(State{LayerName(std::move(name), "lambda"), std::move(call)}) {
  if (!state_->call)
    throw InvalidArgumentError(str("layer \"", state_->name.get(), "\" has no function"));
}

Array Layer::operator()(const Array& x) const {
  Array y = state_->call(x);
  if (!y.defined())
    throw InvalidArgumentError(str("layer \"", name(), "\" gave an Array without a value"));
  state_->output = y.type();
  return y;
}

std::vector<Variable> Layer::variables() const {
  return state_->variables ? state_->variables() : std::vector<Variable>{};
}

std::vector<Layer> Layer::layers() const {
  return state_->layers ? state_->layers() : std::vector<Layer>{};
}

LayerSummary Layer::summary() const {
  LayerSummary line{name(), state_->name.kind(), state_->output};
  if (!line.output) return line;
  for (const Variable& variable : variables()) {
    const std::int64_t elements = variable.shape().elements();
    line.parameters += elements;
    if (variable.spec().trainable) line.trainable_parameters += elements;
  }
  return line;
}

// Chosen names first: a given one must not take a name that a later layer has chosen.
void name_layers(const std::vector<Layer>& layers) {
  LayerNames names;
  take_names(names, layers);
  give_names(names, layers);
}

}  // namespace cairn::nn
