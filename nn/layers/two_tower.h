// Two towers for retrieval: queries and candidates become vectors of one space, in which a product
// says how well they fit.
//   Source  Yi et al., "Sampling-bias-corrected neural modeling for large corpus item
//           recommendations", RecSys 2019.
#pragma once
#include <string>
#include <vector>

#include "nn/layers/layers.h"

namespace cairn::nn {

struct TwoTowerOptions {
  Layer query;      // required: from what describes a query to [b, d]
  Layer candidate;  // required: to the same d
  float temperature = 1;
  bool normalize = false;  // vectors to length 1, so that products are cosines
};

// Scores of every query with every candidate of the batch, [b, b]: q · cᵀ / temperature. The
// diagonal has the pairs that belong together; the loss takes the others of a row as negatives.
//   Errors  InvalidArgument: a temperature not above 0; towers that do not give float32 [b, d] with
//           one known d; two layers that chose the same name. Else those of the towers.
//   Thread  one, as everything that records.
class TwoTower {
 public:
  explicit TwoTower(TwoTowerOptions options);
  Array operator()(const Array& query, const Array& candidate) const;
  // The vectors alone, [b, d], as an index of candidates wants them.
  Array embed_query(const Array& query) const;
  Array embed_candidate(const Array& candidate) const;
  // The query tower's, then those of the candidates' that it does not share.
  //   Errors  InvalidArgument: they were not called in this scope yet.
  std::vector<Variable> variables() const;

 private:
  Array embed(const Layer& tower, const Array& x) const;
  TwoTowerOptions options_;
};

}  // namespace cairn::nn
