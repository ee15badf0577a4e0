// Interactions are where recommendation models differ; everything else of them is Dense and
// Embedding.
#include "nn/interactions.h"

#include "core/base/error.h"

namespace cairn::nn {

Array DotInteraction::operator()(const std::vector<Array>& vectors) const {
  if (vectors.size() < 2)
    throw InvalidArgumentError(
        str("dot interaction wants at least two vectors per example, got ", vectors.size()));
  Array products = dot_interaction(stack(vectors, 1));
  return options_.keep_first ? concat({vectors[0], products}, 1) : products;
}

CrossNetwork::CrossNetwork(CrossNetworkOptions options)
    : options_(std::move(options)), name_(options_.name, "cross") {
  if (options_.layers < 1)
    throw InvalidArgumentError(str(
        "layer \"", name_.get(), "\": at least one cross layer is wanted, got ", options_.layers));
}

Array CrossNetwork::operator()(const Array& x) const {
  if (x.rank() != 2 || x.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\" wants float32[batch, n] with n known, got ",
                                   x.type().to_string()));
  // The width is that of the input, so the layers are made at the first call.
  if (layers_->empty())
    for (int i = 0; i < options_.layers; ++i)
      layers_->emplace_back(DenseOptions{
          .units = x.shape()[1], .name = str(name_.get(), "/dense_", i), .seed = options_.seed});
  Array crossed = x;
  for (const Dense& layer : *layers_) crossed = x * layer(crossed) + crossed;
  return crossed;
}

std::vector<Variable> CrossNetwork::variables() const {
  std::vector<Variable> all;
  for (const Dense& layer : *layers_)
    for (const Variable& variable : layer.variables()) all.push_back(variable);
  return all;
}

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
