// Retrieval: ranks all candidates for each query by their vectors, and computes metrics of where
// the right candidate is found.
//   Thread  one.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nn/metrics/metrics.h"

namespace cairn::tools {

class Retrieval {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;

  // The next examples, in the order of the data: which candidate belongs to each; and weights, if
  // given.
  void add(std::span<const std::int64_t> candidates, std::span<const float> weights = {});
  std::int64_t examples() const { return static_cast<std::int64_t>(place_of_.size()); }
  // The number of distinct candidates.
  std::int64_t candidates() const { return static_cast<std::int64_t>(first_.size()); }

  // Ranks all candidates for the query of every example. `vectors`: of each example the query's and
  // the candidate's, of one width, one behind the other; a candidate has the vector of its first
  // example. The metrics are of lists with one relevant item (nn/metrics/ranking_metrics.h).
  //   Cost  examples · candidates · width.
  Metrics evaluate(std::span<const float> vectors,
                   const std::vector<std::unique_ptr<nn::Metric>>& metrics) const;

 private:
  std::unordered_map<std::int64_t, std::int64_t> places_;  // of candidates by id
  std::vector<std::int64_t> place_of_;                     // by example
  std::vector<std::size_t> first_;                         // example of each candidate
  std::vector<float> weights_;
};

}  // namespace cairn::tools
