#include "nn/layers/dense.h"

#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {

Dense::Dense(DenseOptions options) : options_(std::move(options)), name_(options_.name, "dense") {
  if (options_.units < 1)
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": units must be at least 1, got ", options_.units));
}

// The names are part of checkpoints.
std::vector<Variable> Dense::make(VariableCreator& creator, std::int64_t inputs) const {
  std::vector<Variable> made;
  VariableSpec kernel{.name = name_.get() + "/kernel", .shape = {inputs, options_.units}};
  kernel.initializer = options_.kernel_initializer.resolve(inputs, options_.units, options_.seed);
  made.push_back(creator.create_variable(std::move(kernel)));
  if (options_.use_bias)
    made.push_back(creator.create_variable({.name = name_.get() + "/bias",
                                            .shape = {options_.units},
                                            .initializer = options_.bias_initializer}));
  return made;
}

void Dense::check_input(const Array& x) const {
  bool fits = x.defined() && x.rank() >= 2 && x.dtype() == DType::kFloat32;
  for (int axis = 1; fits && axis < x.rank(); ++axis) fits = x.shape()[axis] != Shape::kUnknown;
  if (!fits)
    throw InvalidArgumentError(str(
        "layer \"", name_.get(), "\" wants float32[batch, ..., n] with all but the batch known, ",
        "got ", x.defined() ? x.type().to_string() : "nothing",
        x.defined() && x.dtype() != DType::kFloat32 ? "; numbers become float32 by cast()" : ""));
}

// The product, the bias and the activation are three operations here; the planner makes them one
// pass over the product's panels (core/exec/fused.h).
Array Dense::operator()(const Array& x) const {
  check_input(x);
  const std::int64_t inputs = x.shape()[x.rank() - 1];
  const auto& variables =
      variables_.in_scope([&](VariableCreator& creator) { return make(creator, inputs); });
  // A layer that is shared must see the same number of inputs everywhere. matmul would refuse it
  // too, without the layer's name.
  if (variables[0].shape()[0] != inputs)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" was built for ",
                                   variables[0].shape()[0], " inputs, got ", x.type().to_string()));
  const Array kernel = variables[0].read();
  Array y = matmul(x.rank() == 2 ? x : reshape(x, {-1, inputs}), kernel);
  add_weight_loss(options_.kernel_regularizer, variables[0], kernel);
  if (options_.use_bias) {
    const Array bias = variables[1].read();
    y = y + bias;
    add_weight_loss(options_.bias_regularizer, variables[1], bias);
  }
  // The activation sees the shape of the result: it may look along an axis.
  if (x.rank() > 2) y = reshape(y, x.shape().with_dim(x.rank() - 1, options_.units));
  y = options_.activation(y);
  add_activity_loss(options_.activity_regularizer, name_.get(), y);
  return y;
}

Variable Dense::bias() const {
  if (!options_.use_bias)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" has no bias"));
  return variables_.made(name_.get())[1];
}

Mlp::Mlp(MlpOptions options) : options_(std::move(options)), name_(options_.name, "mlp") {
  if (options_.units.empty())
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": units must name at least one layer's width"));
  for (const std::int64_t units : options_.units)
    if (units < 1)
      throw InvalidArgumentError(
          str("layer \"", name_.get(), "\": units must be at least 1, got ", units));
  if (!options_.activation) options_.activation = Activation("relu");
}

// The last layer of a model that makes logits is linear, hence the default of last_linear.
const std::vector<Dense>& Mlp::layers() const {
  for (std::size_t i = layers_->size(); i < options_.units.size(); ++i) {
    DenseOptions dense{
        .units = options_.units[i], .name = str(name_.get(), "/dense_", i), .seed = options_.seed};
    if (i + 1 < options_.units.size() || !options_.last_linear)
      dense.activation = options_.activation;
    layers_->emplace_back(std::move(dense));
  }
  return *layers_;
}

Array Mlp::operator()(Array x) const {
  for (const Dense& layer : layers()) x = layer(x);
  return x;
}

std::vector<Variable> Mlp::variables() const {
  std::vector<Variable> all;
  for (const Dense& layer : layers())
    for (const Variable& variable : layer.variables()) all.push_back(variable);
  return all;
}

}  // namespace cairn::nn
