#include "nn/base/layer_name.h"

#include <utility>

#include "core/base/error.h"

namespace cairn::nn {

LayerName::LayerName(std::string chosen, std::string kind) : state_(std::make_shared<State>()) {
  state_->chosen = !chosen.empty();
  state_->name = std::move(chosen);
  state_->kind = std::move(kind);
}

const std::string& LayerName::get() const {
  return state_->name.empty() ? state_->kind : state_->name;
}

// Models that were called before they became parts of this one may have given equal names. Their
// variables exist by then, and the creator has given those different names.
void LayerNames::take(const LayerName& layer) {
  const auto& state = layer.state_;
  if (state->name.empty()) return;
  const auto [at, fresh] = taken_.emplace(state->name, state);
  if (!fresh && at->second != state && at->second->chosen && state->chosen)
    throw InvalidArgumentError(
        str("two layers of one model are named \"", state->name, "\"; rename one of them"));
}

void LayerNames::give(const LayerName& layer) {
  const auto& state = layer.state_;
  while (state->name.empty()) {
    const int number = next_[state->kind]++;
    std::string name = number == 0 ? state->kind : str(state->kind, "_", number);
    if (taken_.emplace(name, state).second) state->name = std::move(name);
  }
}

}  // namespace cairn::nn
