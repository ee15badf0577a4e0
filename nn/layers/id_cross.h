// IdCross: one id for each combination of the ids of several columns, or for a hash of it. The wide
// part has a weight for each, and an embedding may have a row.
//   Thread  one, as everything that records.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

class IdCross {
 public:
  // `rows`: how many ids each column has, in their order. `buckets`: as many hashes as that, unless
  // there are no more combinations than buckets; 0: one id for each combination.
  //   Errors  InvalidArgument: fewer than two columns, rows below 1, more than 2^31 combinations.
  IdCross(std::vector<std::int64_t> rows, std::int64_t buckets);
  // How many different ids there are.
  std::int64_t rows() const { return buckets_; }
  // int64 [b] of the columns' ids, each int64 [b] and below its rows: ids outside of them are for
  // the lookup of the column itself to refuse.
  Array operator()(const std::vector<Array>& ids) const;

 private:
  std::vector<std::int64_t> column_rows_;
  std::int64_t combinations_ = 1;
  std::int64_t buckets_ = 0;
};

}  // namespace cairn::nn
