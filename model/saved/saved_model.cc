#include "model/saved/saved_model.h"

#include <algorithm>
#include <filesystem>

#include "core/disk/disk.h"
#include "data/stage/dataset_wire.h"
#include "model/saved/model_examples.h"
#include "model/saved/model_file.h"
#include "model/saved/model_folder.h"
#include "model/saved/model_weights.h"
#include "model/saved/predictions.h"
#include "model/steps/runner_of.h"

namespace cairn {
namespace {

// ---- the graph ----

// Recorded on the first replica of this process: it reads its own copies, without any exchange.
ConcreteFunction traced(Strategy& strategy, const Function& predict, const ElementSpec& input) {
  const Scope cross = strategy.scope();
  const ReplicaContext replica(strategy, 0);
  const Scope open(current_variable_creator(), &replica);
  return trace(
      [&](const std::vector<TraceArgument>& arguments) { return predict.inlined(arguments); },
      {input});
}

void verify_predicts(const ConcreteFunction& function, const std::string& name) {
  const Graph& graph = function.graph;
  const auto meets = [](const Node& node) { return node.op->effect == Effect::kAllReduce; };
  if (graph.updates_variables() || std::ranges::any_of(graph.nodes, meets))
    throw InvalidArgumentError(
        str("save_model: \"", name, "\" changes variables, or meets other replicas: what a saved ",
            "model computes depends on one batch alone; leave the training to another function"));
  if (graph.elements_taken().front() != 1 || function.takes_worker_index)
    throw InvalidArgumentError(
        str("save_model: \"", name, "\" takes ", graph.elements_taken().front(),
            " elements of its iterator, or asks for its worker: one batch is what it gets"));
  if (graph.outputs.empty())
    throw InvalidArgumentError(str("save_model: \"", name, "\" returns nothing"));
}

// ---- the description ----

// Every column that the model takes must be among those that reading gives.
void verify_reads(const Dataset& examples, const ElementSpec& input) {
  const ElementSpec batch = examples.batch(1).element_spec();
  for (const ColumnSpec& column : input.columns) {
    const TensorType& read = batch.columns[batch.find(column.name)].type;
    if (read.dtype != column.type.dtype || !column.type.shape.admits(read.shape))
      throw InvalidArgumentError(str("save_model: the model takes \"", column.name, "\" as ",
                                     column.type.to_string(), ", and its examples have ",
                                     read.to_string()));
  }
}

SavedModel described(const ConcreteFunction& function, const ElementSpec& input,
                     const SaveModelOptions& options) {
  if (!parse_json(options.metadata, "a model's metadata").is_object())
    throw InvalidArgumentError(str("a model's metadata is a JSON object, not ", options.metadata));
  if (!input.label.empty())
    throw InvalidArgumentError(
        str("save_model: the input has the label \"", input.label, "\": a model predicts it"));
  SavedModel model{.folder = {}, .name = options.name, .cairn_version = CAIRN_VERSION};
  model.input = input;
  model.outputs = output_columns(function.graph);
  for (const auto& spec : function.variables) model.variables.push_back(*spec);
  if (options.examples.defined()) {
    model.examples = without_files(options.examples);
    verify_reads(model.examples, input);
  }
  model.label = options.label;
  model.metadata = options.metadata;
  return model;
}

// Where the weights have every row, initial values would say nothing. Of a value, they may be as
// large as the variable.
void drop_unneeded_initializers(SavedModel& model, const std::vector<std::int64_t>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= model.variables[i].rows()) model.variables[i].initializer = {};
}

// ---- the folder ----

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `checkpoint`: null, the model has no weights.
void write_model(SavedModel& model, const ConcreteFunction& function, const std::string* checkpoint,
                 const std::string& to) {
  Disk& disk = system_disk();
  disk.make_folder(to);
  if (checkpoint != nullptr) {
    const CopiedWeights copied = copy_weights(LocalPlace::of_this_machine(), *checkpoint,
                                              model.variables, to + "/" + kWeightsFolder);
    model.global_step = copied.global_step;
    drop_unneeded_initializers(model, copied.rows);
  }
  disk.write_atomically(to + "/" + kGraphFile, as_text(function.bytes));
  if (model.examples.defined())
    disk.write_atomically(to + "/" + kExamplesFile, as_text(serialize(model.examples)));
  model.folder = to;
  disk.write_atomically(to + "/" + kModelFile, model_text(model));
}

}  // namespace

std::int64_t SavedModel::parameters() const {
  std::int64_t all = 0;
  for (const VariableSpec& variable : variables) all += variable.shape.elements();
  return all;
}

std::string signature_text(const SavedModel& model) {
  std::string text = str("model \"", model.name, "\" of step ", model.global_step,
                         ", saved by Cairn ", model.cairn_version, "\n  takes");
  for (const ColumnSpec& column : model.input.columns)
    text += str("\n    ", column.name, "  ", column.type.to_string());
  text += "\n  gives";
  for (const ColumnSpec& column : model.outputs)
    text += str("\n    ", column.name, "  ", column.type.to_string());
  text += str("\n  holds ", model.variables.size(), " variables of ", model.parameters(),
              " parameters\n");
  return text;
}

// All processes of a group make the checkpoint together. Only the chief does the rest.
SavedModel save_model(Strategy& strategy, const Function& predict, const ElementSpec& input,
                      const SaveModelOptions& options, const std::string& folder) {
  std::string target = std::filesystem::absolute(folder).lexically_normal().string();
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  const ConcreteFunction function = traced(strategy, predict, input);
  verify_predicts(function, predict.name());
  SavedModel model = described(function, input, options);
  const std::string temporary = temporary_name(target);
  if (!writes_for_all(strategy)) {
    if (options.checkpoint.empty() && !options.without_weights)
      strategy.save({.folder = temporary, .lasting = false});
    model.folder = target;
    return model;
  }
  verify_target(target);
  const TemporaryFolder saved(temporary + "-checkpoint");
  std::string checkpoint = options.checkpoint;
  if (checkpoint.empty() && !options.without_weights)
    checkpoint = strategy.save({.folder = saved.path(), .lasting = false});
  system_disk().make_folder(folder_of(target));
  const TemporaryFolder made(temporary);
  system_disk().remove_tree(made.path());
  write_model(model, function, options.without_weights ? nullptr : &checkpoint, made.path());
  put_in_place(made, target);
  model.folder = target;
  return model;
}

SavedModel read_saved_model(const std::string& folder) {
  SavedModel model = read_model_file(folder);
  const std::string path = folder + "/" + kExamplesFile;
  if (!system_disk().exists(path)) return model;
  const std::string bytes = system_disk().read(path);
  model.examples = parse_dataset(std::as_bytes(std::span(bytes)));
  return model;
}

}  // namespace cairn
