// Tables of vectors, looked up by id: the part of a recommendation model that is too large for one
// machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "nn/base/layer.h"
#include "nn/base/layer_name.h"
#include "nn/layers/regularizers.h"

namespace cairn::nn {

// The ids of a batch's examples: one each, several each, or bags of any size.
struct Ids {
  Array values;           // [b] or [b, k]; of bags all ids, [n]
  Array row_splits = {};  // of bags: int64 [b + 1], where each begins; undefined: these are none
  // The factors of the ids of bags, float32 [n], each for its id's vector. Undefined: all 1.
  Array weights = {};
  bool are_bags() const { return row_splits.defined(); }
};

struct EmbeddingOptions {
  std::string name = "";  // "embedding", or as the model names it
  std::int64_t rows = 0;  // required: ids are [0, rows)
  std::int64_t dim = 0;   // required
  // How several ids of an example become one vector; empty: their vectors stay apart.
  std::optional<Combiner> combiner = {};
  std::optional<Initializer> initializer = {};  // default: uniform in ±0.05
  std::uint64_t seed = 0;                       // of the default initializer
  // Rows in a hash table: only those ever updated take memory, so that `rows` may be up to 2^46 /
  // dim.
  bool hashed = false;
  // If it is hashed: which rows come to be, and which go.
  RowPolicy policy = {};
  // A penalty on the vectors that a call looks up, each as often as its id occurs, divided by the
  // number of examples. The reference's embeddings_regularizer takes all rows instead, which would
  // make every step read and change the whole table.
  Regularizer rows_regularizer = {};
  Regularizer activity_regularizer = {};  // of what the layer gives, divided likewise
};

// Variable NAME [rows, dim]. A step pulls and pushes only the rows that it names, each once,
// however often its id occurs.
//   Errors  InvalidArgument: rows or dim below 1, ids not int32 or int64, ragged ids without a
//           combiner. When run: an id outside [0, rows).
class Embedding {
 public:
  explicit Embedding(EmbeddingOptions options);
  // [b] -> [b, dim].  [b, k] -> [b, dim] with a combiner, [b, k, dim] without.
  Array operator()(const Array& ids) const;
  // Ragged ids: example i has the ids values[row_splits[i]] up to values[row_splits[i + 1] - 1];
  // row_splits is int64 [b + 1] -> [b, dim]. An example without ids gives zeros.
  Array operator()(const Array& values, const Array& row_splits) const;
  // Either of both. Weights change what is summed, and not what a mean divides by, which is the
  // number of ids.
  Array operator()(const Ids& ids) const;
  // The table. InvalidArgument: it was not called in this scope yet.
  Variable table() const { return variables_.made(name_.get())[0]; }
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  Array lookup(const Array& ids, const Array& examples) const;
  Array combine(const Array& ids, const Array& rows) const;
  Array regularized(Array y) const;
  EmbeddingOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

}  // namespace cairn::nn
