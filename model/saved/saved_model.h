// A model on disk: a folder that predicts in a program that has never seen the model's code.
//
//   SavedModel saved = save_model(strategy, predict, input, {}, "/models/clicks");
//   ...
//   LoadedModel model = LoadedModel::load("/models/clicks");      // model/saved/loaded_model.h
//   model.predict(batch);
//
// It holds a traced function as a graph, the variables that the graph reads without their
// optimizer's slots, how its examples are read and turned into what it takes, and a description of
// all that. docs/model-format.md lists files and fields.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/variable.h"
#include "core/tensor/element.h"
#include "data/dataset/dataset.h"
#include "strategy/base/strategy.h"

namespace cairn {

struct SaveModelOptions {
  std::string name = "model";
  // How its examples are read, up to what the model takes: a source of files, and above it
  // features() and map() alone. No file is read, and the names of these are not saved. A source
  // without files is saved as its columns. Undefined: the model takes elements and reads nothing.
  Dataset examples = {};
  // The column that it predicts, for readers of files: they may lack it.
  std::string label = "";
  std::string metadata = "{}";  // the program's own, a JSON object
  // A checkpoint of the strategy's to take the weights from. Empty: one is made, and removed again.
  std::string checkpoint = "";
  // The folder gets no weights, and its step is 0: it only describes how examples become
  // predictions. For programs that take the weights from elsewhere, as `cairn serve` does while a
  // run trains.
  bool without_weights = false;
};

// The description of a model that its folder holds.
struct SavedModel {
  std::string folder;
  std::string name;
  std::string cairn_version;  // of the program that saved it
  std::int64_t global_step = 0;
  ElementSpec input;                // a batch, without a label
  std::vector<ColumnSpec> outputs;  // in the order in which the function returned them
  std::vector<VariableSpec> variables;
  Dataset examples;  // its source's files are not there: LoadedModel::read()
  std::string label;
  std::string metadata = "{}";

  std::int64_t parameters() const;  // elements of all variables; of a hashed one all that may be
};
// Inputs, outputs and the number of parameters, a line each, for messages and people.
std::string signature_text(const SavedModel& model);

// Saves what `predict` computes, as a folder `folder`. `predict` takes one Iterator, from which it
// takes one element of `input` (Features without a label), and returns its outputs; it is traced
// here, as a replica of the strategy runs it.
//   Place   Everything is written beside `folder` first and takes its place at once, so that a
//           crash leaves the old model or the new one, and at most a folder whose name goes on
//           ".tmp-". A model of ours that is there is replaced, and nothing else is.
//   Groups  Under MultiWorkerMirroredStrategy every process calls it, and the chief alone writes.
//           The others return once it has the weights; what it meets later, it alone raises.
//   Cost    A checkpoint of the whole strategy, unless options name one, and one copy of the
//           weights, which goes through memory block by block.
//   Errors  AlreadyExists: `folder` is something else than a saved model or an empty folder.
//           InvalidArgument: metadata that is no JSON object; a function that changes variables, or
//           that takes more than one element; examples that the model cannot take. Those of
//           tracing, of saving, and of the disk.
//   Thread  as the strategy's save().
SavedModel save_model(Strategy& strategy, const Function& predict, const ElementSpec& input,
                      const SaveModelOptions& options, const std::string& folder);

// Reads the description of the model in `folder`, whose files are first verified by checksum.
//   Errors  NotFound: there is no model. DataLoss, naming the file: it is missing, or not as it was
//           written. Unimplemented: another version of the format; names both.
//   Thread  any that may block on files.
SavedModel read_saved_model(const std::string& folder);

}  // namespace cairn
