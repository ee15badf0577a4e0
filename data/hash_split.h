// A part of a dataset, by the hash of a column: training data apart from validation data.
#pragma once
#include <string>

#include "data/dataset.h"

namespace cairn {

// The examples whose value of `column` has its place in [begin, end) of [0, 1). Examples of one
// value go the same way, whatever file and order they are in; 0 to 0.9 and 0.9 to 1 together are
// all of them. The column is one text or whole number, which counts as its decimal text. A place is
// the same on every machine and in every version, and has nothing to do with a value's hashed().
//   Errors  InvalidArgument: batches, another column, a range that is not one.
//   Cost    a hash per example. A shard() deals out lines before they are parsed only below it.
Dataset hash_split(const Dataset& dataset, std::string column, double begin, double end);

}  // namespace cairn
