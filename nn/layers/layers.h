// Layer: any layer of nn/, an activation or a function of the program's own as one type, so that
// models can be lists of them.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/variable.h"
#include "nn/base/layer_name.h"

namespace cairn::nn {

class Layer;

// Anything callable as a layer is: from one array to one array. A class may have further members:
//   layer_name()  its LayerName, if a model may name it
//   variables()   the variables of the scope that is open
//   layers()      the layers that it is made of, for a model within a model
template <typename L>
concept LayerLike = !std::same_as<std::remove_cvref_t<L>, Layer> && std::copy_constructible<L> &&
                    std::is_invocable_r_v<Array, const L&, const Array&>;

// One line of a model's summary.
struct LayerSummary {
  std::string name, kind;                 // "dense_1", "dense"
  std::optional<TensorType> output = {};  // of the last call; empty before the first one
  std::int64_t parameters = 0;            // elements of its variables in the scope that is open
  std::int64_t trainable_parameters = 0;
};

// Copies mean the same layer, as those of what it was made of do.
//   Thread  one, as everything that records.
class Layer {
 public:
  template <LayerLike L>
  Layer(L layer) : Layer(make_state(std::move(layer))) {}  // NOLINT(google-explicit-constructor)
  // A function with a name.
  Layer(std::string name, std::function<Array(const Array&)> call);

  Array operator()(const Array& x) const;
  const std::string& name() const { return state_->name.get(); }
  const LayerName& layer_name() const { return state_->name; }
  // Empty if it has none. A function's own are not known.
  //   Errors  InvalidArgument: it was not called in this scope yet.
  std::vector<Variable> variables() const;
  // Empty, unless it is a model of layers.
  std::vector<Layer> layers() const;
  //   Errors  as variables(), if another scope has called it.
  LayerSummary summary() const;

 private:
  struct State {
    LayerName name;
    std::function<Array(const Array&)> call;
    std::function<std::vector<Variable>()> variables = {};
    std::function<std::vector<Layer>()> layers = {};
    std::optional<TensorType> output = {};
  };
  explicit Layer(State state) : state_(std::make_shared<State>(std::move(state))) {}

  template <typename L>
  static State make_state(L layer) {
    State state{[&] {
                  if constexpr (requires { layer.layer_name(); })
                    return LayerName(layer.layer_name());
                  else
                    return LayerName("", "lambda");
                }(),
                layer};
    if constexpr (requires { layer.variables(); })
      state.variables = [layer] { return layer.variables(); };
    if constexpr (requires {
                    { layer.layers() } -> std::convertible_to<std::vector<Layer>>;
                  })
      state.layers = [layer] { return std::vector<Layer>(layer.layers()); };
    return state;
  }

  std::shared_ptr<State> state_;
};

// Names all that have no name yet, layers within layers as well, in order.
//   Errors  InvalidArgument: two of them chose the same name.
void name_layers(const std::vector<Layer>& layers);

}  // namespace cairn::nn
