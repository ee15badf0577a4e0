// A saved model's outputs, replaced without training: probabilities that are calibrated, scores in
// another unit, an output more.
//
//   replace_outputs("/models/clicks", [](const Outputs& today) {
//     return Outputs{{"probability", today["probability"] * 0.5f}, {"raw", today["probability"]}};
//   }, R"({"halved": true})");
//
// The recorded operations become part of the saved graph: whatever loads the model gets the new
// values and needs to know nothing else.
#pragma once
#include <functional>
#include <string>

#include "core/graph/function.h"
#include "model/saved/saved_model.h"

namespace cairn {

// Records the new outputs from today's, which have the names of SavedModel::outputs.
using MakeOutputs = std::function<Outputs(const Outputs& today)>;

// Replaces the outputs of the model in `folder` by those that `make` returns, and its metadata by
// `metadata`, a JSON object. Weights, examples and files of others in the folder stay. Nodes that
// no output needs any more are dropped, so that outputs which are taken back leave the graph as it
// was before they were replaced.
//   Result  as read_saved_model() of the new model.
//   Place   As save_model(): written beside the folder first, so that a crash leaves the old model
//           or the new one, and at most a folder whose name goes on ".tmp-". Weights are hard links
//           to the old ones, or copies where the file system has no links.
//   Cost    Every file is read twice, for its checksum. The graph alone is in memory.
//   Errors  those of read_saved_model(). InvalidArgument: `make` returns nothing, or reads anything
//           besides today's outputs; metadata that is no JSON object. The disk's. The model is then
//           as it was.
//   Thread  any that may block on files and traces no function.
SavedModel replace_outputs(const std::string& folder, const MakeOutputs& make,
                           const std::string& metadata);

// Checks that a new folder can be made beside the model's, before hours go into what it would hold.
//   Errors  PermissionDenied and others of the disk, with the path and what to do about it.
void verify_replaceable(const std::string& folder);

}  // namespace cairn
