#include "nn/layers/two_tower.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/graph/ops.h"

namespace cairn::nn {

TwoTower::TwoTower(TwoTowerOptions options) : options_(std::move(options)) {
  if (!(options_.temperature > 0))
    throw InvalidArgumentError(
        str("two towers: the temperature must be above 0, got ", options_.temperature));
}

// Both towers are named together, whichever is called first.
Array TwoTower::embed(const Layer& tower, const Array& x) const {
  name_layers({options_.query, options_.candidate});
  const Array y = tower(x);
  if (y.rank() != 2 || y.shape()[1] == Shape::kUnknown || y.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("tower \"", tower.name(),
                                   "\" must give float32[batch, n] with n known, gave ",
                                   y.type().to_string()));
  if (!options_.normalize) return y;
  // A vector of zeros stays one.
  return y * rsqrt(maximum(reduce_sum(square(y), {1}, true), Array(1e-12f)));
}

Array TwoTower::embed_query(const Array& query) const { return embed(options_.query, query); }
Array TwoTower::embed_candidate(const Array& candidate) const {
  return embed(options_.candidate, candidate);
}

Array TwoTower::operator()(const Array& query, const Array& candidate) const {
  const Array queries = embed_query(query);
  const Array candidates = embed_candidate(candidate);
  if (queries.shape()[1] != candidates.shape()[1])
    throw InvalidArgumentError(str("the towers \"", options_.query.name(), "\" and \"",
                                   options_.candidate.name(), "\" must give vectors of one width, ",
                                   "they give ", queries.shape()[1], " and ",
                                   candidates.shape()[1]));
  return matmul(queries, candidates, false, true) * Array(1 / options_.temperature);
}

std::vector<Variable> TwoTower::variables() const {
  std::vector<Variable> all = options_.query.variables();
  for (const Variable& variable : options_.candidate.variables())
    if (std::ranges::none_of(all, [&](const Variable& other) {
          return other.shared_spec() == variable.shared_spec();
        }))
      all.push_back(variable);
  return all;
}

}  // namespace cairn::nn
