// model.json: what a saved model says of itself, and the checksums of its other files.
//   Thread  any that may block on files.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/graph/graph.h"
#include "model/saved/saved_model.h"

namespace cairn {

inline constexpr int kModelFormat = 1;
inline constexpr const char* kModelFile = "model.json";
inline constexpr const char* kGraphFile = "graph";        // serialize(Graph)
inline constexpr const char* kExamplesFile = "examples";  // serialize(Dataset); absent without any
inline constexpr const char* kWeightsFolder = "weights";  // holds a checkpoint

// The text of model.json in `model.folder`, where all other files are there already.
std::string model_text(const SavedModel& model);
// Reads that file, after comparing it and all others with their checksums; without `examples`,
// which is a file of its own.
//   Errors  as read_saved_model().
SavedModel read_model_file(const std::string& folder);
// The function that a model computes, which takes and gives what `model` says.
//   Errors  DataLoss: the file is the graph of another model. Those of parse_graph().
Graph read_model_graph(const SavedModel& model);
// The files that model.json lists with their checksums, relative to the folder of a sound model.
std::vector<std::string> model_files(const std::string& folder);
// Whether the folder is a saved model of ours, sound or not.
bool is_saved_model(const std::string& folder);

}  // namespace cairn
