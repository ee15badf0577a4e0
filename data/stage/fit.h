// fit() finds the facts about the data that feature columns need, by reading it once.
//
//     Fit found = fit(train, {.numeric = {{"age"}, {"hours"}}, .vocabularies = {"occupation"}});
//     std::vector columns = {FeatureColumn::numeric(found.numeric),
//                            FeatureColumn::vocabulary("occupation", found.vocabularies[0])};
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cairn {

// Which values a vocabulary keeps: the most frequent ones.
struct VocabularyOptions {
  std::int64_t min_count = 1;       // values that occur less often are left out
  std::int64_t max_size = 1 << 20;  // values; rarer ones are left out
};

// The age of a column's dates in days, for NumericInput::days_until.
struct AgeRequest {
  std::string column;  // int64 seconds since 1970
  std::optional<std::int64_t>
      until;  // the date that ages are counted to; none: the latest there is
};

struct FitRequest {
  // mean and stddev are filled in; log1p and days_until are applied first
  std::vector<NumericInput> numeric;
  std::vector<std::string> vocabularies;  // string or integer columns, ragged ones included
  VocabularyOptions vocabulary_options = {};
  std::vector<AgeRequest> ages = {};
};

struct Fit {
  // in the order of the request; stddev is 1 for a constant column
  std::vector<NumericInput> numeric;
  std::vector<std::vector<std::string>> vocabularies;  // most frequent first, equals in text order
  std::vector<NumericInput> ages;                      // in the order of the request
  std::int64_t examples = 0;
  LinesRead lines;
};

// Reads `dataset` (not batched, finite) once.
//   Errors  InvalidArgument: a column is not there or is not of a fitting type, or there are no
//           examples; and those of reading.
//   Cost  one pass; memory for the distinct values of each vocabulary column, however few are kept.
Fit fit(const Dataset& dataset, const FitRequest& request);

// One of the two by itself.
std::vector<NumericInput> fit_numeric(const Dataset& dataset,
                                      const std::vector<NumericInput>& columns);
std::vector<std::string> fit_vocabulary(const Dataset& dataset, const std::string& column,
                                        VocabularyOptions options = {});

}  // namespace cairn
