// ClickModel: numbers and ids of an example -> one logit, by way of one vector for the numbers and
// one for each id.
//
//   kDlrm    pairwise dot products of the vectors, beside the numbers' own. Naumov et al., "Deep
//   learning recommendation model for personalization and recommendation systems", 2019.
//   kDcnV2   cross layers over all vectors side by side, stacked below the top. Wang et al., WWW
//   2021 (interactions.h).
//   kDeepFm  a factorization machine and a weight per id, beside the top. Guo et al., "DeepFM: A
//   factorization-machine based neural network for CTR prediction", IJCAI 2017.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/layers/interactions.h"

namespace cairn::nn {

enum class ClickModelKind { kDlrm, kDcnV2, kDeepFm };

// The shape of a model. `bottom` ends in a further layer of `dim` units, `top` in one of a single
// unit.
struct ClickModelOptions {
  ClickModelKind kind = ClickModelKind::kDlrm;
  struct Table {
    std::string name;
    std::int64_t rows = 0;
    bool hashed = false;  // as an Embedding's
    bool bags = false;    // of ids, which `combiner` makes one vector
    RowPolicy policy = {};
  };
  std::vector<Table> tables = {};             // one per column of ids; required
  std::int64_t dim = 16;                      // of each vector
  std::vector<std::int64_t> bottom = {64};    // hidden layers of the numbers' vector
  std::vector<std::int64_t> top = {256, 64};  // hidden layers above
  int cross_layers = 2;                       // kDcnV2
  Combiner combiner = Combiner::kMean;        // of tables of bags
  std::uint64_t seed = 0;
};

// Variables: each table [rows, dim] under its name (kDeepFm: NAME/weight [rows, 1] too),
// bottom/dense_i, top/dense_i, cross/dense_i.
//   Errors  InvalidArgument: no tables; and those of the layers.
class ClickModel {
 public:
  explicit ClickModel(ClickModelOptions options);
  // numbers float32 [b, n] (undefined: there are none), and for each table ids [b], or bags ->
  // [b, 1].
  Array operator()(const Array& numbers, const std::vector<Ids>& ids) const;
  Array operator()(const Array& numbers, const std::vector<Array>& ids) const;

 private:
  ClickModelOptions options_;
  std::vector<Embedding> tables_, weights_;
  Mlp bottom_, top_;
  CrossNetwork cross_;
};

}  // namespace cairn::nn
