#include "nn/layers/gru.h"

#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {

GRU::GRU(GRUOptions options) : options_(std::move(options)), name_(options_.name, "gru") {
  if (options_.units < 1)
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": units must be at least 1, got ", options_.units));
  if (!options_.activation) options_.activation = Activation("tanh");
  if (!options_.recurrent_activation) options_.recurrent_activation = Activation("sigmoid");
}

std::vector<Variable> GRU::make(VariableCreator& creator, std::int64_t inputs) const {
  const std::int64_t units = options_.units;
  std::vector<Variable> made;
  VariableSpec kernel{.name = name_.get() + "/kernel", .shape = {inputs, 3 * units}};
  kernel.initializer = options_.kernel_initializer.resolve(inputs, 3 * units, options_.seed);
  made.push_back(creator.create_variable(std::move(kernel)));
  VariableSpec recurrent{.name = name_.get() + "/recurrent_kernel", .shape = {units, 3 * units}};
  recurrent.initializer =
      options_.recurrent_initializer
          ? options_.recurrent_initializer.resolve(units, 3 * units, options_.seed)
          : orthogonal(units, 3 * units, options_.seed);
  made.push_back(creator.create_variable(std::move(recurrent)));
  if (options_.use_bias)
    made.push_back(creator.create_variable({.name = name_.get() + "/bias",
                                            .shape = {2, 3 * units},
                                            .initializer = options_.bias_initializer}));
  return made;
}

void GRU::check_input(const Array& x, const Array& initial_state) const {
  if (!x.defined() || x.rank() != 3 || x.dtype() != DType::kFloat32 || x.shape()[1] < 1 ||
      x.shape()[2] == Shape::kUnknown)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\" wants float32[batch, time, n] with time, at least 1, and n ",
                                   "known, got ", x.defined() ? x.type().to_string() : "nothing"));
  if (initial_state.defined() &&
      (initial_state.rank() != 2 || initial_state.dtype() != DType::kFloat32 ||
       initial_state.shape()[1] != options_.units))
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" wants a state float32[batch, ",
                                   options_.units, "], got ", initial_state.type().to_string()));
}

Array GRU::next(const Array& state, const Array& inputs, const Array& recurrent) const {
  const std::int64_t units = options_.units;
  const auto part = [units](const Array& of, std::int64_t which) {
    return slice(of, 1, which * units, units);
  };
  const Array keep = options_.recurrent_activation(part(inputs, 0) + part(recurrent, 0));
  const Array reset = options_.recurrent_activation(part(inputs, 1) + part(recurrent, 1));
  const Array candidate = options_.activation(part(inputs, 2) + reset * part(recurrent, 2));
  return keep * state + (Array(1.0f) - keep) * candidate;
}

// The contribution of the inputs is one product for all time steps; only the recurrent part waits
// for the step before.
Array GRU::operator()(const Array& x, const Array& initial_state) const {
  check_input(x, initial_state);
  const std::int64_t time = x.shape()[1], inputs = x.shape()[2], width = 3 * options_.units;
  const auto& variables =
      variables_.in_scope([&](VariableCreator& creator) { return make(creator, inputs); });
  if (variables[0].shape()[0] != inputs)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" was built for ",
                                   variables[0].shape()[0], " inputs, got ", x.type().to_string()));
  const Array kernel = variables[0].read(), recurrent_kernel = variables[1].read();
  add_weight_loss(options_.kernel_regularizer, variables[0], kernel);
  add_weight_loss(options_.recurrent_regularizer, variables[1], recurrent_kernel);
  Array projected = matmul(reshape(x, {Shape::kUnknown, inputs}), kernel);
  Array recurrent_bias;
  if (options_.use_bias) {
    const Array bias = variables[2].read();
    add_weight_loss(options_.bias_regularizer, variables[2], bias);
    projected = projected + squeeze(slice(bias, 0, 0, 1), 0);
    recurrent_bias = squeeze(slice(bias, 0, 1, 1), 0);
  }
  projected = reshape(projected, {x.shape()[0], time, width});
  Array state = initial_state;
  std::vector<Array> states;
  for (std::int64_t i = 0; i < time; ++i) {
    const std::int64_t at = options_.go_backwards ? time - 1 - i : i;
    const Array now = squeeze(slice(projected, 1, at, 1), 1);
    if (!state.defined()) state = zeros_like(slice(now, 1, 0, options_.units));
    Array recurrent = matmul(state, recurrent_kernel);
    if (recurrent_bias.defined()) recurrent = recurrent + recurrent_bias;
    state = next(state, now, recurrent);
    if (options_.return_sequences) states.push_back(state);
  }
  return options_.return_sequences ? stack(states, 1) : state;
}

}  // namespace cairn::nn
