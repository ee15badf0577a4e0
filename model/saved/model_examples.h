// How a saved model's examples are read: a dataset's description without its files.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cairn {

// The description as a model keeps it.
//   Errors  InvalidArgument: batches, or a stage that is no features() and no map(); a source
//           without files whose columns no tensors can stand for.
Dataset without_files(const Dataset& examples);
// The source of such a description, over files; over IDX files, one for each column, where the
// label's may be left out.
//   Errors  FailedPrecondition: it has no files. InvalidArgument: none, or of IDX a wrong number.
Dataset over_files(const Dataset& examples, std::vector<std::string> files);
// The same source with another way to treat bad lines or records. Sources that have no such choice
// stay as they are.
Dataset with_on_error(const Dataset& source, OnError on_error);
// The stages of `examples` over `raw`, which replaces their source.
//   Errors  those of the calls of Dataset: other columns.
Dataset prepared(const Dataset& examples, const Dataset& raw);

}  // namespace cairn
