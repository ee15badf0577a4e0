#include "nn/dense.h"

#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {

Dense::Dense(DenseOptions options) : options_(std::move(options)) {
  if (options_.units < 1)
    throw InvalidArgumentError(
        str("layer \"", options_.name, "\": units must be at least 1, got ", options_.units));
}

// The names are part of checkpoints.
std::vector<Variable> Dense::make(VariableCreator& creator, std::int64_t inputs) const {
  std::vector<Variable> made;
  VariableSpec kernel{.name = options_.name + "/kernel", .shape = {inputs, options_.units}};
  kernel.initializer = options_.kernel_initializer.value_or(
      Initializer::glorot_uniform(inputs, options_.units, options_.seed));
  made.push_back(creator.create_variable(std::move(kernel)));
  if (options_.use_bias)
    made.push_back(creator.create_variable({.name = options_.name + "/bias",
                                            .shape = {options_.units},
                                            .initializer = options_.bias_initializer}));
  return made;
}

// The product, the bias and the activation are three operations here; the planner makes them one
// pass over the product's panels (core/exec/fused.h).
Array Dense::operator()(const Array& x) const {
  if (!x.defined() || x.rank() != 2 || x.shape()[1] == Shape::kUnknown ||
      x.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("layer \"", options_.name,
                                   "\" wants float32[batch, n] with n known, got ",
                                   x.defined() ? x.type().to_string() : "nothing"));
  const auto& variables =
      variables_.in_scope([&](VariableCreator& creator) { return make(creator, x.shape()[1]); });
  // A layer that is shared must see the same number of inputs everywhere. matmul would refuse it
  // too, without the layer's name.
  if (variables[0].shape()[0] != x.shape()[1])
    throw InvalidArgumentError(str("layer \"", options_.name, "\" was built for ",
                                   variables[0].shape()[0], " inputs, got ", x.type().to_string()));
  Array y = matmul(x, variables[0].read());
  if (options_.use_bias) y = y + variables[1].read();
  return options_.activation ? options_.activation(y) : y;
}

Variable Dense::bias() const {
  if (!options_.use_bias)
    throw InvalidArgumentError(str("layer \"", options_.name, "\" has no bias"));
  return variables_.made(options_.name)[1];
}

// The last layer of a model that makes logits is linear, hence the default of last_linear.
Mlp::Mlp(MlpOptions options) {
  if (options.units.empty())
    throw InvalidArgumentError(
        str("layer \"", options.name, "\": units must name at least one layer's width"));
  Activation activation =
      options.activation ? options.activation : Activation([](const Array& x) { return relu(x); });
  for (std::size_t i = 0; i < options.units.size(); ++i) {
    DenseOptions dense{
        .units = options.units[i], .name = str(options.name, "/dense_", i), .seed = options.seed};
    if (i + 1 < options.units.size() || !options.last_linear) dense.activation = activation;
    layers_.emplace_back(std::move(dense));
  }
}

Array Mlp::operator()(Array x) const {
  for (const Dense& layer : layers_) x = layer(x);
  return x;
}

std::vector<Variable> Mlp::variables() const {
  std::vector<Variable> all;
  for (const Dense& layer : layers_)
    for (const Variable& variable : layer.variables()) all.push_back(variable);
  return all;
}

}  // namespace cairn::nn
