// Interactions are where recommendation models differ; everything else of them is Dense and
// Embedding.
#include "nn/layers/interactions.h"

#include "core/base/error.h"

namespace cairn::nn {

Array DotInteraction::operator()(const std::vector<Array>& vectors) const {
  if (vectors.size() < 2)
    throw InvalidArgumentError(
        str("dot interaction wants at least two vectors per example, got ", vectors.size()));
  Array products = dot_interaction(stack(vectors, 1));
  return options_.keep_first ? concat({vectors[0], products}, 1) : products;
}

namespace {

// The width n of x, [batch, n].
std::int64_t width_of(const Array& x, const LayerName& layer) {
  if (x.rank() != 2 || x.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str("layer \"", layer.get(),
                                   "\" wants float32[batch, n] with n known, got ",
                                   x.type().to_string()));
  return x.shape()[1];
}

std::vector<Variable> variables_of(const std::vector<Dense>& layers) {
  std::vector<Variable> all;
  for (const Dense& layer : layers)
    for (const Variable& variable : layer.variables()) all.push_back(variable);
  return all;
}

}  // namespace

CrossNetwork::CrossNetwork(CrossNetworkOptions options)
    : options_(std::move(options)), name_(options_.name, "cross") {
  if (options_.layers < 1)
    throw InvalidArgumentError(str(
        "layer \"", name_.get(), "\": at least one cross layer is wanted, got ", options_.layers));
}

// The width is that of the input, so the layers are made at the first call.
Array CrossNetwork::operator()(const Array& x) const {
  const std::int64_t width = width_of(x, name_);
  if (layers_->empty())
    for (int i = 0; i < options_.layers; ++i)
      layers_->emplace_back(DenseOptions{
          .units = width, .name = str(name_.get(), "/dense_", i), .seed = options_.seed});
  Array crossed = x;
  for (const Dense& layer : *layers_) crossed = x * layer(crossed) + crossed;
  return crossed;
}

std::vector<Variable> CrossNetwork::variables() const { return variables_of(*layers_); }

Cross::Cross(CrossOptions options) : options_(std::move(options)), name_(options_.name, "cross") {
  if (options_.projection_dim < 0)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\": projection_dim must be at least 0, ", "got ",
                                   options_.projection_dim));
}

Array Cross::operator()(const Array& x0, const Array& x) const {
  const std::int64_t width = width_of(x, name_);
  if (width_of(x0, name_) != width)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\": x0 is ", x0.type().to_string(),
                                   " and x is ", x.type().to_string(),
                                   ", which must be of one width"));
  if (layers_->empty()) {
    const std::int64_t narrow = options_.projection_dim;
    const std::string first = name_.get() + "/dense_0", second = name_.get() + "/dense_1";
    if (narrow > 0)
      layers_->emplace_back(
          DenseOptions{.units = narrow, .use_bias = false, .name = first, .seed = options_.seed});
    layers_->emplace_back(
        DenseOptions{.units = width, .name = narrow > 0 ? second : first, .seed = options_.seed});
  }
  Array mixed = x;
  for (const Dense& layer : *layers_) mixed = layer(mixed);
  return x0 * mixed + x;
}

std::vector<Variable> Cross::variables() const { return variables_of(*layers_); }

// All pairs in time proportional to their number of vectors: the square of the sum holds every pair
// twice, and the squares once.
Array factorization_machine(const std::vector<Array>& vectors) {
  if (vectors.size() < 2)
    throw InvalidArgumentError(str(
        "a factorization machine wants at least two vectors per example, got ", vectors.size()));
  const Array all = stack(vectors, 1);
  return reduce_sum(square(reduce_sum(all, {1})) - reduce_sum(square(all), {1}), {1}, true) * 0.5f;
}

}  // namespace cairn::nn
