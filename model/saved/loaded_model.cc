#include "model/saved/loaded_model.h"

#include <algorithm>

#include "core/base/look_up.h"
#include "core/exec/local_runtime.h"
#include "core/exec/plan.h"
#include "data/dataset/dataset_iterator.h"
#include "model/saved/model_examples.h"
#include "model/saved/model_file.h"
#include "model/steps/batch_counts.h"
#include "strategy/base/device_names.h"
#include "strategy/base/local_checkpoint.h"

namespace cairn {
namespace {

// Where the columns of `input` stand in `data`.
//   Errors  InvalidArgument: one is not there.
std::vector<std::size_t> places_of(const ElementSpec& input, const ElementSpec& data) {
  std::vector<std::size_t> places;
  for (const ColumnSpec& column : input.columns) places.push_back(data.find(column.name));
  return places;
}

void verify_batch(const ElementSpec& input, const Element& batch) {
  if (batch.size() != input.columns.size())
    throw InvalidArgumentError(str("predict: the model takes ", input.columns.size(),
                                   " columns, and the batch has ", batch.size()));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const ColumnSpec& column = input.columns[i];
    if (batch[i].defined() && batch[i].dtype() == column.type.dtype &&
        column.type.shape.admits(batch[i].shape()))
      continue;
    throw InvalidArgumentError(
        str("predict: the model takes \"", column.name, "\" as ", column.type.to_string(),
            ", and the batch has ",
            batch[i].defined() ? batch[i].type().to_string() : std::string("nothing")));
  }
}

}  // namespace

struct LoadedModel::State {
  State(SavedModel saved, Device& device)
      : model(std::move(saved)), runtime(0, device), workspace(device) {}

  SavedModel model;
  LocalRuntime runtime;
  Workspace workspace;
  std::shared_ptr<const Plan> plan;
  std::uint64_t runs = 0;
};

LoadedModel::LoadedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;
LoadedModel& LoadedModel::operator=(LoadedModel&&) noexcept = default;

// Variables take their rows as they are made, so that the model is in memory once.
LoadedModel LoadedModel::load(const std::string& folder, const std::string& device) {
  auto state = std::make_unique<State>(read_saved_model(folder), *device_named(device).device);
  const LocalPlace place = LocalPlace::of_this_machine();
  const std::string weights = folder + "/" + kWeightsFolder;
  if (!system_disk().exists(weights))
    throw FailedPreconditionError(str("the model in ", folder,
                                      " was saved without weights, while its run was training: ",
                                      "name the model that the run has saved at its end"));
  RestoreStatus restored = restore_local(state->runtime, place, weights).status;
  ConcreteFunction function;
  function.graph = read_model_graph(state->model);
  for (const VariableSpec& spec : state->model.variables)
    function.variables.push_back(state->runtime.create_variable(spec).shared_spec());
  restored.assert_consumed();
  state->plan = make_plan(function.graph, state->runtime.bind(function));
  return LoadedModel(std::move(state));
}

const SavedModel& LoadedModel::about() const { return state_->model; }

// Runs in an evaluation's context: no step of training, and random numbers of its own each time.
std::vector<Tensor> LoadedModel::predict(const Element& batch) {
  verify_batch(state_->model.input, batch);
  StepContext step;
  step.global_step = -1;
  step.closure = ++state_->runs;
  std::vector<std::vector<Element>> elements(1);
  elements.front().push_back(batch);
  return run(state_->plan, state_->workspace, state_->runtime.store(), step, {},
             std::move(elements));
}

std::int64_t LoadedModel::predict(
    const Dataset& data, const std::function<void(const std::vector<Tensor>& outputs)>& take,
    const PredictOptions& options) {
  constexpr std::int64_t kBatch = 1024;
  if (data.batched() && options.batch)
    throw InvalidArgumentError(
        "predict: `batch` is of single examples, and the data is in batches: leave one of them "
        "out");
  const Dataset batches = data.batched() ? data : data.batch(options.batch.value_or(kBatch));
  verify_to_predict(batches);
  const std::vector<std::size_t> places = places_of(state_->model.input, batches.element_spec());
  const auto iterator =
      open(batches, {}, {.line_events = options.line_events, .pipes = options.pipes});
  while (const auto element = iterator->next()) {
    Element batch;
    for (const std::size_t place : places) batch.push_back((*element)[place]);
    take(predict(batch));
    look_up();
  }
  return iterator->skipped();
}

Dataset LoadedModel::read(std::vector<std::string> files, std::optional<OnError> on_error) const {
  if (!about().examples.defined())
    throw FailedPreconditionError(
        str("the model in ", about().folder, " was saved without examples, so that it reads no ",
            "files: predict() from elements, or from a dataset that has its columns"));
  const Dataset source = over_files(about().examples, std::move(files));
  return on_error ? with_on_error(source, *on_error) : source;
}

Dataset LoadedModel::prepare(const Dataset& raw) const {
  return about().examples.defined() ? prepared(about().examples, raw) : raw;
}

}  // namespace cairn
