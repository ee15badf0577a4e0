// What feature columns need to know about the data, found by reading it once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cairn {

struct VocabularyOptions {
  std::int64_t min_count = 1;  // values that occur less often are left out
  std::int64_t max_size = 1 << 20;
};

struct FitRequest {
  std::vector<NumericInput> numeric;      // mean and stddev are filled in; log1p is applied first
  std::vector<std::string> vocabularies;  // string or integer columns, ragged ones included
  VocabularyOptions vocabulary_options = {};
};

struct Fit {
  // in the order of the request; stddev is 1 for a constant column
  std::vector<NumericInput> numeric;
  std::vector<std::vector<std::string>> vocabularies;  // most frequent first, equals in text order
  std::int64_t examples = 0;
  LinesRead lines;
};

// Reads `dataset` (not batched, finite) once. InvalidArgument: a column is not there, is not of a
// fitting type, or there are no examples.
Fit fit(const Dataset& dataset, const FitRequest& request);

// One of the two, by itself.
std::vector<NumericInput> fit_numeric(const Dataset& dataset,
                                      const std::vector<NumericInput>& columns);
std::vector<std::string> fit_vocabulary(const Dataset& dataset, const std::string& column,
                                        VocabularyOptions options = {});

}  // namespace cairn
