// ExactScan: the candidates with the largest products with queries, by looking at all of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "serving/retrieval/best_list.h"

namespace cairn::serving {

// The product of two vectors, summed in the order of their elements: the score that a scan gives,
// to the bit.
float product_of(std::span<const float> a, std::span<const float> b);

//   Thread  any; immutable.
class ExactScan {
 public:
  // `vectors`: row-major, `width` floats each.
  ExactScan(std::span<const float> vectors, std::int64_t width);

  std::int64_t size() const { return size_; }
  std::int64_t width() const { return width_; }

  // For each of the queries, which lie one behind the other, the up to `k` best places. Those in
  // leave_out[query] are passed over, if there are such lists; they ascend.
  //   Result  from the best; of equal scores the lower place comes first, as in a stable sort. A
  //           query's result does not depend on those beside it. Products that are not numbers,
  //           for floats that are too large, are left out.
  //   Cost    about a matrix product of the queries with all candidates. 16 KB of scratch.
  std::vector<std::vector<ScoredPlace>> top(
      std::span<const float> queries, std::int64_t k,
      std::span<const std::vector<std::int64_t>> leave_out) const;

 private:
  std::int64_t size_, width_;
  // Panels of as many candidates as a tile has columns: element j of all of them side by side, then
  // element j + 1. The last one is padded with zeros.
  std::vector<float> panels_;
};

}  // namespace cairn::serving
