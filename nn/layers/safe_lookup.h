// Lookups in examples of which some ids are missing, or have no weight.
//
//   Array vector = nn::safe_embedding_lookup_sparse(table, ids, row_splits,
//                                                   {.combiner = Combiner::kMean});
//
// An id below 0 is missing, and counts as if it were not there; so does one whose weight is not
// above 0, unless the combiner is a sum. An example of which nothing is left gives zeros, or the
// row of `default_id`. As tf.nn.safe_embedding_lookup_sparse; tables of several parts need no list,
// since a variable is one.
#pragma once
#include <cstdint>
#include <optional>

#include "core/graph/ops.h"
#include "core/graph/variable.h"

namespace cairn::nn {

struct SafeLookupOptions {
  Combiner combiner = Combiner::kMean;
  // The row of examples without any id that counts. In [0, rows); one outside is an error when run.
  std::optional<std::int64_t> default_id = {};
  Array weights = {};  // float32, shaped as the ids; undefined: all 1
};

// Looks up ragged examples: ids int32 or int64 [n], row_splits int64 [b + 1], table float32 [rows,
// dim] -> float32 [b, dim]. Each gets the weighted sum of its rows, divided for kMean by the sum of
// the weights, for kSqrtn by the root of the sum of their squares.
//   Errors  InvalidArgument: other dtypes or shapes. When run: an id from `rows` on.
//   Cost    the rows of the ids that count, each pulled once. A missing id pulls and pushes none:
//           it stands for one of the batch that counts, with weight 0. Only in a batch in which no
//           id counts row 0 stands in, whose gradient is zeros.
//   Thread  as all recording.
Array safe_embedding_lookup_sparse(const Variable& table, const Array& ids, const Array& row_splits,
                                   const SafeLookupOptions& options = {});
// Looks up examples padded to the same number of ids, as a rule by -1: ids [b, k] -> [b, dim].
//   Errors  as above. InvalidArgument: k is unknown.
Array safe_embedding_lookup(const Variable& table, const Array& ids,
                            const SafeLookupOptions& options = {});

}  // namespace cairn::nn
