// A part of a dataset, by the hash of a column: training data apart from validation data.
#pragma once
#include <string>

#include "data/dataset/dataset.h"

namespace cairn {

// The examples whose value of `column` hashes into [begin, end), a part of [0, 1). Examples with
// the same value always end up in the same part, whatever their file or order, so the parts 0 to
// 0.9 and 0.9 to 1 share no example and leave none out. The column has a string or integer per
// example; an integer is hashed as its decimal digits. The hash is the same on every machine and in
// every version, and is not the one that FeatureColumn::hashed() uses.
//   Errors  InvalidArgument: batches, another column, a range that is not one.
//   Cost    a hash per example. A shard() deals out lines before they are parsed only below it.
Dataset hash_split(const Dataset& dataset, std::string column, double begin, double end);

}  // namespace cairn
