// Attention over sequences, and positions for it. Sequences are float32 [batch, time, width] with
// time and width known.
//   Source  Vaswani et al., "Attention is all you need", NIPS 2017.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/dense.h"

namespace cairn::nn {

// The reference's arguments, with its defaults.
struct MultiHeadAttentionOptions {
  std::int64_t num_heads = 0;   // required
  std::int64_t key_dim = 0;     // required: width of each head's queries and keys
  std::int64_t value_dim = 0;   // of each head's values; 0: key_dim
  std::int64_t output_dim = 0;  // 0: the query's width
  bool causal = false;          // a position sees itself and those before it
  float dropout = 0;            // of the attention's weights, in training
  bool use_bias = true;
  KernelInitializer kernel_initializer = {};  // default: Glorot uniform
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string name = "";  // "multi_head_attention", or as the model names it
  std::uint64_t seed = 0;
};

// Each head gives softmax(q kᵀ / sqrt(key_dim)) v; the heads' results side by side go through a
// last linear map. The layers are Dense: NAME/query, NAME/key, NAME/value, NAME/attention_output;
// their kernels are matrices: head h has columns h · key_dim up to (h + 1) · key_dim (the reference
// has an axis of its own for the heads, over the same numbers).
//   Errors  InvalidArgument: num_heads or key_dim below 1, a width below 0, a dropout outside [0,
//           1); sequences of another form.
class MultiHeadAttention {
 public:
  explicit MultiHeadAttention(MultiHeadAttentionOptions options);
  // Self-attention: [b, t, d] -> [b, t, output_dim].
  Array operator()(const Array& x) const { return (*this)(x, x); }
  // Queries from [b, t, d], keys and values from `value` [b, s, e]. `padding` [b, s], bool or
  // number: positions of `value` where it is false or 0 are not seen. A query that sees none gets
  // the mean of all values.
  Array operator()(const Array& query, const Array& value, const Array& padding = {}) const;
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const;
  const LayerName& layer_name() const { return name_; }

 private:
  void make_parts(std::int64_t query_width) const;
  Array heads_of(const Array& projected, std::int64_t width) const;
  Array masked(const Array& scores, const Array& padding) const;

  MultiHeadAttentionOptions options_;
  LayerName name_;
  // Query, key, value, output; made when the query's width is known, and shared by copies.
  std::shared_ptr<std::vector<Dense>> parts_ = std::make_shared<std::vector<Dense>>();
};

struct PositionalEmbeddingOptions {
  std::int64_t length = 0;  // required: most positions
  Initializer initializer = Initializer::uniform(-0.05f, 0.05f);
  std::string name = "";  // "positional_embedding", or as the model names it
};

// x plus a vector for each position, which is learnt: [b, t, d] -> [b, t, d], t at most `length`.
// Variable NAME/embeddings [length, d].
//   Errors  InvalidArgument: length below 1, a longer sequence, or one of another form.
class PositionalEmbedding {
 public:
  explicit PositionalEmbedding(PositionalEmbeddingOptions options);
  Array operator()(const Array& x) const;
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  PositionalEmbeddingOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

}  // namespace cairn::nn
