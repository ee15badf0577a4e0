#include "nn/layers/attention.h"

#include <cmath>
#include <utility>

#include "core/graph/ops.h"
#include "nn/base/training_scope.h"

namespace cairn::nn {
namespace {

// In place of a score that must not count: low enough that its weight is 0 beside any other, and
// finite, so that a query that sees nothing has no NaN.
constexpr float kUnseen = -1e9f;

void check_sequence(const LayerName& layer, const Array& x) {
  if (!x.defined() || x.rank() != 3 || x.dtype() != DType::kFloat32 ||
      x.shape()[1] == Shape::kUnknown || x.shape()[2] == Shape::kUnknown)
    throw InvalidArgumentError(str(
        "layer \"", layer.get(), "\" wants float32[batch, time, width] with time and width known,",
        " got ", x.defined() ? x.type().to_string() : "nothing"));
}

// [t, s]: whether query i may see position j. Where there are more positions than queries, the
// reference aligns the beginnings.
Array causal_mask(std::int64_t queries, std::int64_t positions) {
  Tensor mask(DType::kBool, Shape{queries, positions});
  const auto values = mask.mutable_values<bool>();
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < positions; ++j)
      values[static_cast<std::size_t>(i * positions + j)] = j <= i;
  return Array(std::move(mask));
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(MultiHeadAttentionOptions options)
    : options_(std::move(options)), name_(options_.name, "multi_head_attention") {
  if (options_.num_heads < 1 || options_.key_dim < 1 || options_.value_dim < 0 ||
      options_.output_dim < 0)
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": num_heads and key_dim must be at least 1, other widths ",
            "at least 0; got ", options_.num_heads, " heads of ", options_.key_dim));
  if (!(options_.dropout >= 0 && options_.dropout < 1))
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": dropout must be in [0, 1), got ", options_.dropout));
  if (options_.value_dim == 0) options_.value_dim = options_.key_dim;
}

void MultiHeadAttention::make_parts(std::int64_t query_width) const {
  if (!parts_->empty()) return;
  const std::int64_t output = options_.output_dim == 0 ? query_width : options_.output_dim;
  const std::vector<std::pair<const char*, std::int64_t>> parts{
      {"/query", options_.num_heads * options_.key_dim},
      {"/key", options_.num_heads * options_.key_dim},
      {"/value", options_.num_heads * options_.value_dim},
      {"/attention_output", output}};
  for (const auto& part : parts)
    parts_->emplace_back(DenseOptions{.units = part.second,
                                      .use_bias = options_.use_bias,
                                      .kernel_initializer = options_.kernel_initializer,
                                      .name = name_.get() + part.first,
                                      .seed = options_.seed,
                                      .kernel_regularizer = options_.kernel_regularizer,
                                      .bias_regularizer = options_.bias_regularizer});
}

// [b, t, heads · width] -> [b · heads, t, width]: the batch of a batched product.
Array MultiHeadAttention::heads_of(const Array& projected, std::int64_t width) const {
  const std::int64_t time = projected.shape()[1];
  const Array apart = reshape(projected, {Shape::kUnknown, time, options_.num_heads, width});
  return reshape(transpose(apart, {0, 2, 1, 3}), {Shape::kUnknown, time, width});
}

// Scores are [b · heads, t, s].
Array MultiHeadAttention::masked(const Array& scores, const Array& padding) const {
  const std::int64_t queries = scores.shape()[1], positions = scores.shape()[2];
  Array seen = scores;
  if (options_.causal) seen = where(causal_mask(queries, positions), seen, Array(kUnseen));
  if (!padding.defined()) return seen;
  if (padding.rank() != 2 || padding.shape()[1] != positions)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" wants a padding mask [batch, ",
                                   positions, "], got ", padding.type().to_string()));
  const Array counts = reshape(cast(padding, DType::kBool), {Shape::kUnknown, 1, 1, positions});
  const Array apart = reshape(seen, {Shape::kUnknown, options_.num_heads, queries, positions});
  return reshape(where(counts, apart, Array(kUnseen)), {Shape::kUnknown, queries, positions});
}

Array MultiHeadAttention::operator()(const Array& query, const Array& value,
                                     const Array& padding) const {
  check_sequence(name_, query);
  check_sequence(name_, value);
  make_parts(query.shape()[2]);
  const std::vector<Dense>& parts = *parts_;
  const float scale = 1 / std::sqrt(static_cast<float>(options_.key_dim));
  const Array queries = heads_of(parts[0](query) * Array(scale), options_.key_dim);
  const Array keys = heads_of(parts[1](value), options_.key_dim);
  const Array values = heads_of(parts[2](value), options_.value_dim);
  Array weights = softmax(masked(batch_matmul(queries, keys, false, true), padding));
  if (is_training()) weights = dropout(weights, options_.dropout, {.seed = options_.seed});
  const std::int64_t time = query.shape()[1];
  const Array mixed = reshape(batch_matmul(weights, values),
                              {Shape::kUnknown, options_.num_heads, time, options_.value_dim});
  return parts[3](reshape(transpose(mixed, {0, 2, 1, 3}),
                          {Shape::kUnknown, time, options_.num_heads * options_.value_dim}));
}

std::vector<Variable> MultiHeadAttention::variables() const {
  if (parts_->empty())
    throw InvalidArgumentError(
        str("layer \"", name_.get(),
            "\" has no variables in this scope yet: they are made at its first call"));
  std::vector<Variable> all;
  for (const Dense& part : *parts_)
    for (const Variable& variable : part.variables()) all.push_back(variable);
  return all;
}

PositionalEmbedding::PositionalEmbedding(PositionalEmbeddingOptions options)
    : options_(std::move(options)), name_(options_.name, "positional_embedding") {
  if (options_.length < 1)
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": length must be at least 1, got ", options_.length));
}

Array PositionalEmbedding::operator()(const Array& x) const {
  check_sequence(name_, x);
  const std::int64_t time = x.shape()[1], width = x.shape()[2];
  if (time > options_.length)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" has ", options_.length,
                                   " positions, got ", x.type().to_string()));
  const auto& variables = variables_.in_scope([&](VariableCreator& creator) {
    return std::vector<Variable>{creator.create_variable({.name = name_.get() + "/embeddings",
                                                          .shape = {options_.length, width},
                                                          .initializer = options_.initializer})};
  });
  if (variables[0].shape()[1] != width)
    throw InvalidArgumentError(str("layer \"", name_.get(), "\" was built for a width of ",
                                   variables[0].shape()[1], ", got ", x.type().to_string()));
  const Array positions = variables[0].read();
  return x + (time == options_.length ? positions : slice(positions, 0, 0, time));
}

}  // namespace cairn::nn
