// The feature columns that a model was fitted on, as JSON that is saved with it, and the first
// difference to those of another run. An id means a value by its place in a vocabulary, and a
// number is standardised by a mean and a deviation: a model that goes on with others is wrong
// without any error.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "data/dataset/dataset.h"
#include "data/feature/feature_column.h"

namespace cairn {

// {"numeric": [{column, mean, stddev, log1p, days_until?}], "vocabularies": {column: [base64]},
//  "columns": [{name, is, rows}]}
// The last says in words what each column is, in their order, but what was fitted to data.
Json fitted_json(const std::vector<FeatureColumn>& columns);
// Those of the features() calls of a dataset.
std::vector<FeatureColumn> feature_columns_of(const Dataset& dataset);

enum class Compare : std::uint8_t {
  kAll,
  kCommon,  // columns that both have, with as many rows
};
// The first difference of two such values, as in: feature "animal": value 1 of the vocabulary is
// "ant" in the checkpoint and "bee" in the data now. Empty: there is none. What `saved` lacks, as
// older checkpoints do, is not compared.
std::string first_difference(const Json& saved, const Json& now, Compare which = Compare::kAll);

}  // namespace cairn
