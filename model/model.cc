#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/graph/ops.h"
#include "model/fit_loop.h"
#include "model/model_state.h"
#include "model/saved/predictions.h"
#include "model/steps/batch_counts.h"
#include "model/steps/runner_of.h"
#include "nn/base/training_scope.h"
#include "strategy/base/replica_context.h"

namespace cairn {
namespace {

// The columns that a dataset of arrays has.
const std::string kX = "x", kY = "y", kWeight = "sample_weight";
constexpr std::int64_t kBatchSize = 32;  // of arrays, unless an option sets it

const std::string& weights_column(const Tensor& weights) {
  static const std::string none;
  return weights.defined() ? kWeight : none;
}

[[noreturn]] void refuse_of_arrays(const char* call, const char* option, const char* cure) {
  throw InvalidArgumentError(str(call, ": `", option,
                                 "` is of arrays, and the data is a dataset, or a function that "
                                 "makes one: ",
                                 cure));
}

constexpr const char* kWeightCure =
    "give it a column of weights, and compile() its name as `sample_weight`";

void refuse_options_of_arrays(const FitOptions& options) {
  if (options.batch_size) refuse_of_arrays("fit", "batch_size", "append batch(n) to the dataset");
  if (options.shuffle.value_or(false))
    refuse_of_arrays("fit", "shuffle", "append shuffle(n) to the dataset, before batch(n)");
  if (options.seed) refuse_of_arrays("fit", "seed", "give it to the dataset's shuffle()");
  if (options.sample_weight.defined()) refuse_of_arrays("fit", "sample_weight", kWeightCure);
  if (options.validation_split != 0)
    refuse_of_arrays("fit", "validation_split",
                     "hold examples back with take() and skip(), as `validation_data`");
}

// How many of `count` examples are trained on.
std::int64_t kept_of(std::int64_t count, const FitOptions& options) {
  const double split = options.validation_split;
  if (!(split >= 0 && split < 1))
    throw InvalidArgumentError(
        str("fit: validation_split must be at least 0 and below 1, got ", split));
  if (split == 0) return count;
  if (options.validation_data.defined())
    throw InvalidArgumentError("fit: either validation_data or validation_split; both are given");
  const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(count) * (1 - split)));
  if (kept == 0 || kept == count)
    throw InvalidArgumentError(str("fit: a validation_split of ", split, " leaves ", kept, " of ",
                                   count, " examples to train on and ", count - kept,
                                   " to judge by: neither can be without"));
  return kept;
}

// Behind the rows that `all` has already, which is made larger by doubling it.
void append(Tensor& all, std::int64_t& rows, const Tensor& part) {
  const std::int64_t more = part.shape()[0];
  if (more == 0) return;
  const std::size_t row_bytes = part.bytes() / static_cast<std::size_t>(more);
  const std::size_t used = static_cast<std::size_t>(rows) * row_bytes;
  if (!all.defined() || rows + more > all.shape()[0]) {
    Tensor larger(part.dtype(), part.shape().with_dim(0, std::max(2 * rows, rows + more)));
    if (rows > 0) std::memcpy(larger.mutable_raw(), all.raw(), used);
    all = std::move(larger);
  }
  std::memcpy(all.mutable_raw() + used, part.raw(), part.bytes());
  rows += more;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

}  // namespace

StepFunctions::Shares shares_of(StepRunner& runner) {
  return {runner.shares(), runner.strategy().num_replicas_in_sync() > 1};
}

StepRunner& Model::State::runner() {
  if (!step_runner) step_runner = step_runner_of(strategy);
  return *step_runner;
}

Function& Model::State::test_function(const std::string& weights) {
  const auto found = tests.find(weights);
  if (found != tests.end()) return found->second;
  Function test = strategy.function(
      [this, weights](Iterator input) { return functions->test(input, weights); }, "evaluate");
  return tests.emplace(weights, std::move(test)).first->second;
}

Model::Model(std::string name, std::function<Outputs(const Features&)> network)
    : state_(
          new State{std::move(name), get_strategy(), std::move(network), {}, {}, {}, {}, {}, {}}) {}
Model::~Model() = default;

const Array& Model::only_column(const Features& features) {
  std::vector<std::string> names;
  for (const ColumnSpec& column : features.spec().columns)
    if (column.name != kWeight) names.push_back(column.name);
  if (names.size() == 1) return features[names.front()];
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ", ", name);
  throw InvalidArgumentError(str("the network takes one Array, and the data has ", names.size(),
                                 " columns of features (", text,
                                 "): let it take (const Features&) and choose"));
}

const std::string& Model::name() const { return state_->name; }
Strategy& Model::strategy() { return state_->strategy; }

StepFunctions& Model::functions() {
  if (!state_->functions)
    throw FailedPreconditionError(
        str("the model \"", state_->name, "\" was not compiled: call compile() first"));
  return *state_->functions;
}

StepRunner& Model::runner() { return state_->runner(); }
nn::Optimizer& Model::optimizer() { return functions().optimizer(); }

float Model::learning_rate() {
  const Scope scope = state_->strategy.scope();
  return optimizer().current_learning_rate();
}

void Model::set_learning_rate(float rate) {
  const Scope scope = state_->strategy.scope();
  optimizer().set_learning_rate(rate);
}

void Model::compile(CompileOptions options) {
  state_->functions.emplace(state_->network, std::move(options));
  state_->tests.clear();
}

// Traced in the strategy's own scope, where layers find the variables that its steps use. The
// columns are arguments: with several replicas no element is taken there. A network without
// variables fits any columns, and is built anew for others.
void Model::build(const ElementSpec& batches) {
  if (!state_->variables.empty()) return;
  std::vector<SignatureEntry> columns;
  ElementSpec features;
  for (const ColumnSpec& column : batches.columns) {
    if (column.name == batches.label) continue;
    features.columns.push_back(column);
    columns.emplace_back(column.type);
  }
  if (!state_->graph.outputs.empty() && features == state_->input) return;
  const Scope scope = state_->strategy.scope();
  ConcreteFunction traced = trace(
      [&](const std::vector<TraceArgument>& arguments) {
        std::vector<Array> values;
        for (const TraceArgument& argument : arguments) values.push_back(std::get<Array>(argument));
        const nn::TrainingScope inference(false);
        Outputs outputs = state_->network(
            Features(std::make_shared<const ElementSpec>(features), std::move(values)));
        std::vector<Array> predicted;
        for (const auto& [name, value] : outputs) predicted.push_back(value);
        state_->variables = variables_read(predicted);
        return outputs;
      },
      columns);
  state_->input = std::move(features);
  state_->graph = std::move(traced.graph);
}

void Model::build_beside(ElementSpec batches, const std::string& weights) {
  std::erase_if(batches.columns, [&](const ColumnSpec& column) { return column.name == weights; });
  build(batches);
}

const Graph& Model::predict_graph() const {
  variables();
  return state_->graph;
}

// ---- data ----

Dataset Model::from_arrays(const Tensor& x, const Tensor& y, const Tensor& weights) const {
  std::vector<std::pair<std::string, Tensor>> columns{{kX, x}};
  if (y.defined()) columns.emplace_back(kY, y);
  if (weights.defined()) columns.emplace_back(kWeight, weights);
  return Dataset::from_tensor_slices(std::move(columns), y.defined() ? kY : "");
}

// ---- fit, evaluate, predict ----

History Model::fit(const Dataset& batches, const FitOptions& options) {
  refuse_options_of_arrays(options);
  return FitLoop(*this, {.batches = batches}, options).run();
}

History Model::fit(const DatasetFunction& dataset_fn, const FitOptions& options) {
  refuse_options_of_arrays(options);
  return FitLoop(*this, {.of_pipeline = dataset_fn}, options).run();
}

History Model::fit(const Tensor& x, const Tensor& y, const FitOptions& options) {
  Dataset all = from_arrays(x, y, options.sample_weight);
  const std::int64_t count = x.shape()[0], kept = kept_of(count, options);
  const std::int64_t batch = options.batch_size.value_or(kBatchSize);
  const std::string& weights = weights_column(options.sample_weight);
  FitOptions own = options;
  if (kept < count) {
    own.validation_data = all.skip(kept).batch(batch);
    all = all.take(kept);
  }
  if (options.shuffle.value_or(true))
    all = all.shuffle(std::max<std::int64_t>(kept, 1), options.seed.value_or(0));
  return FitLoop(*this,
                 {.batches = all.batch(batch),
                  .weights = weights,
                  .validation_weights = kept < count ? weights : ""},
                 own)
      .run();
}

Logs Model::evaluate(const Dataset& batches, const EvaluateOptions& options) {
  if (options.batch_size)
    refuse_of_arrays("evaluate", "batch_size", "append batch(n) to the dataset");
  if (options.sample_weight.defined()) refuse_of_arrays("evaluate", "sample_weight", kWeightCure);
  return evaluate_weighted(batches, options, "");
}

Logs Model::evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options) {
  return evaluate_weighted(
      from_arrays(x, y, options.sample_weight).batch(options.batch_size.value_or(kBatchSize)),
      options, weights_column(options.sample_weight));
}

Logs Model::evaluate_weighted(const Dataset& batches, const EvaluateOptions& options,
                              const std::string& weights) {
  functions();
  for (const auto& callback : options.callbacks)
    if (callback == nullptr) throw InvalidArgumentError("evaluate: one of the callbacks is null");
  const std::int64_t count = batches_to_judge(batches, options.steps, "steps");
  build_beside(batches.element_spec(), weights);
  for (const auto& callback : options.callbacks) callback->on_test_begin();
  const StepRunner::Data data = runner().test_data(batches, "evaluate");
  const Logs logs = evaluate_over(runner(), state_->test_function(weights), data, count,
                                  functions().test_metrics());
  for (const auto& callback : options.callbacks) callback->on_test_end(logs);
  return logs;
}

void Model::predict(const Dataset& batches,
                    const std::function<void(const std::vector<Tensor>& outputs)>& take) {
  verify_to_predict(batches);
  build(batches.element_spec());
  runner().predict(
      [&](const Batch& batch) {
        const nn::TrainingScope inference(false);
        return state_->network(batch.features);
      },
      batches, take);
}

std::int64_t Model::predict_to(const Dataset& batches, const std::string& file) {
  build(batches.element_spec());
  std::optional<Predictions> lines;
  if (writes_for_all(strategy())) lines.emplace(file, output_columns(predict_graph()));
  std::int64_t count = 0;
  predict(batches, [&](const std::vector<Tensor>& outputs) {
    count += outputs.at(0).shape()[0];
    if (lines) lines->write(outputs);
  });
  if (lines) lines->finish();
  return count;
}

Tensor Model::predict(const Dataset& batches) {
  Tensor all;
  std::int64_t rows = 0;
  predict(batches, [&](const std::vector<Tensor>& outputs) { append(all, rows, outputs.at(0)); });
  if (!all.defined()) throw InvalidArgumentError("predict: the dataset holds no examples");
  return all.rows(0, rows);
}

Tensor Model::predict(const Tensor& x, std::int64_t batch_size) {
  return predict(from_arrays(x, {}, {}).batch(batch_size));
}

// ---- weights ----

const std::vector<Variable>& Model::variables() const {
  if (state_->graph.outputs.empty())
    throw FailedPreconditionError(
        str("the model \"", state_->name,
            "\" was not built: fit(), evaluate(), predict() or build() makes its variables"));
  return state_->variables;
}

std::vector<Tensor> Model::get_weights() const {
  const Scope scope = state_->strategy.scope();
  std::vector<Tensor> values;
  for (const Variable& variable : variables()) values.push_back(variable.read().eval());
  return values;
}

void Model::set_weights(const std::vector<Tensor>& weights) {
  const auto& all = variables();
  if (weights.size() != all.size())
    throw InvalidArgumentError(str("set_weights: the model has ", all.size(), " variables, got ",
                                   weights.size(), " values"));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (weights[i].shape() != all[i].shape() || weights[i].dtype() != all[i].spec().dtype)
      throw InvalidArgumentError(str("set_weights: the variable \"", all[i].name(), "\" is ",
                                     TensorType{all[i].spec().dtype, all[i].shape()}.to_string(),
                                     ", and its value is ", weights[i].type().to_string()));
  const Scope scope = state_->strategy.scope();
  for (std::size_t i = 0; i < all.size(); ++i) all[i].assign(Array(weights[i]));
}

SavedModel Model::save(const std::string& folder, SaveModelOptions options) {
  variables();
  if (options.name == SaveModelOptions().name) options.name = state_->name;
  const Function predict = state_->strategy.function(
      [&](Iterator input) {
        const nn::TrainingScope inference(false);
        return state_->network(input.get_next().features);
      },
      "predict");
  return save_model(state_->strategy, predict, state_->input, options, folder);
}

std::string Model::summary() const {
  if (state_->graph.outputs.empty())
    return str("Model \"", state_->name, "\": its variables are made when it is built\n");
  constexpr std::size_t kNameWidth = 40, kShapeWidth = 20;
  std::string text = str("Model \"", state_->name, "\"\n", padded("variable", kNameWidth),
                         padded("shape", kShapeWidth), "parameters\n");
  std::int64_t trainable = 0, fixed = 0;
  for (const Variable& variable : state_->variables) {
    const std::int64_t count = variable.spec().rows() * variable.spec().dim();
    (variable.spec().trainable ? trainable : fixed) += count;
    text += str(padded(variable.name(), kNameWidth),
                padded(variable.shape().to_string(), kShapeWidth), count, "\n");
  }
  return text + str("trainable parameters: ", trainable, ", others: ", fixed, "\n");
}

}  // namespace cairn
