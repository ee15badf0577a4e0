// EmbeddingTable: vectors for keys of 64 bits, of which nobody has to say how many there are.
//
//   A row is made when its key is first learnt, or admitted, and may go again (RowPolicy). Rows are
//   hash-placed: keys that follow one another, as ids from a database do, lie on shards all over.
//   A key's row is its product with an odd number, modulo rows(), a power of two: keys below rows()
//   have rows of their own, and others share those of the keys that equal them modulo rows().
//   Source  multiplicative hashing: Knuth, "Sorting and Searching", 6.4.
//   Thread  as an Embedding.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/layers/embedding.h"

namespace cairn::nn {

struct EmbeddingTableOptions {
  std::string name = "";  // "embedding_table", or as the model names it
  std::int64_t dim = 0;   // required
  std::optional<Combiner> combiner = {};
  std::optional<Initializer> initializer = {};  // default: uniform in ±0.05
  std::uint64_t seed = 0;                       // of the default initializer
  RowPolicy policy = {};
  Regularizer rows_regularizer = {};
  Regularizer activity_regularizer = {};
};

// Variable NAME [rows(), dim], hashed.
//   Errors  those of an Embedding.
class EmbeddingTable {
 public:
  explicit EmbeddingTable(EmbeddingTableOptions options);
  // Keys int64 or int32 instead of an Embedding's ids; shapes are its.
  Array operator()(const Array& keys) const { return embedding_(rows_of(keys)); }
  Array operator()(const Array& keys, const Array& row_splits) const {
    return embedding_(rows_of(keys), row_splits);
  }
  Array operator()(const Ids& keys) const;

  // These keys go for good, see Variable::evict().
  void evict(const Array& keys) const { table().evict(rows_of(keys)); }

  std::int64_t rows() const { return rows_; }  // numbers that rows may have: 2^46 / dim or less
  // The row of a key, and the least key of a row: what checkpoints and exports call it.
  std::int64_t row_of(std::int64_t key) const;
  std::int64_t key_of(std::int64_t row) const;
  Variable table() const { return embedding_.table(); }
  std::vector<Variable> variables() const { return embedding_.variables(); }
  const LayerName& layer_name() const { return embedding_.layer_name(); }

 private:
  Array rows_of(const Array& keys) const;
  std::int64_t rows_, factor_, inverse_;  // inverse_ * factor_ is 1 modulo rows_
  Embedding embedding_;
};

}  // namespace cairn::nn
