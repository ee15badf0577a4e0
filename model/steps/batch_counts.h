// How many batches fit(), evaluate() and predict() take of their data.
//   Thread  any.
#pragma once
#include <cstdint>

#include "data/dataset/dataset.h"

namespace cairn {

// Those of a pass over the data, for an epoch of training; `wanted`, if that is above 0.
//   Errors  InvalidArgument, naming `option`: the data has no end, and nothing was wanted; it is
//           empty; its elements are single examples.
std::int64_t batches_of(const Dataset& data, std::int64_t wanted, const char* option);
// The same of data that is judged, which has as many batches as are wanted: that is looked up, by
// reading as far if need be. What a data service gives is not known before.
//   Errors  as above. InvalidArgument: it has fewer.
std::int64_t batches_to_judge(const Dataset& data, std::int64_t wanted, const char* option);
// Data to predict from ends.
//   Errors  InvalidArgument: its description says that it does not; single examples.
void verify_to_predict(const Dataset& data);
// By the description alone, without reading.
bool has_no_end(const Dataset& data);

}  // namespace cairn
