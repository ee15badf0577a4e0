// cairn.Model: the network, compile(), weights, what is shown of it.
#include "model.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "losses.h"
#include "metrics.h"
#include "model_data.h"
#include "optimizers.h"
#include "tables_folder.h"

namespace cairn::python {
namespace {

// Whether a network asks for the mapping although there is one column: its parameter is called
// "features", or is annotated as Features.
bool asks_for_features(nb::handle network) {
  try {
    const nb::object inspect = nb::module_::import_("inspect");
    const nb::object parameters = inspect.attr("signature")(network).attr("parameters");
    for (nb::handle each : parameters.attr("values")()) {
      const auto name = nb::cast<std::string>(each.attr("name"));
      const nb::object annotation = each.attr("annotation");
      const auto type = nb::cast<std::string>(nb::str(annotation));
      return name == "features" || type.ends_with("Features") || type.ends_with("Features'>");
    }
  } catch (const nb::python_error&) {
    // without a signature, as some callables are
  }
  return false;
}

Features without(const Features& features, const std::set<std::string>& hidden) {
  auto spec = std::make_shared<ElementSpec>();
  std::vector<Array> columns;
  for (const ColumnSpec& column : features.spec().columns) {
    if (hidden.contains(column.name)) continue;
    spec->columns.push_back(column);
    columns.push_back(features[column.name]);
  }
  return {std::move(spec), std::move(columns)};
}

}  // namespace

PythonModel::PythonModel(nb::handle network, const std::string& name, const nb::object& strategy,
                         bool own)
    : name_(name),
      own_strategy_(own),
      owner_(strategy.is_none() ? owner_of(current_variable_creator())
                                : SharedOwner(nb::cast<const StrategyObject&>(strategy))) {
  require_object(network, "a network");
  require_function(network,
                   "a network is a layer, or a function of the features that returns arrays");
  callable_ = network_.keep(network);
  seen_->takes_features = asks_for_features(network);
  const auto make = [&] {
    model_ = std::make_unique<Model>(
        [network = callable_, seen = seen_, name](const Features& features) {
          const Acquired here;
          const Tracing tracing;
          return call(network, *seen, name, features);
        },
        name);
  };
  if (strategy.is_none()) {
    make();
    return;
  }
  strategy_object_ = strategy_.keep(strategy);
  const Scope scope = owner_->strategy().scope();
  make();
}

nb::object PythonModel::strategy() const {
  if (strategy_object_ != nullptr) return nb::borrow(strategy_object_->get());
  return owner_ == nullptr ? nb::none() : nb::cast(StrategyObject(owner_));
}

void PythonModel::close() {
  if (own_strategy_) owner_->close();
}

Dataset PythonModel::travelling(const Dataset& dataset) const {
  return python::travelling(dataset, owner_);
}

Outputs PythonModel::call(const SharedReference& network, Seen& seen, const std::string& name,
                          const Features& features) {
  const Features own = without(features, seen.hidden);
  const auto& columns = own.spec().columns;
  const bool single = columns.size() == 1 && !seen.takes_features;
  const nb::object given = single ? nb::cast(own[columns[0].name]) : nb::cast(own);
  Nest shape;
  Outputs outputs = outputs_of(nb::borrow(network->get())(given),
                               "the network of the model \"" + name + "\"", network->get(), &shape);
  if (outputs.empty()) type_error(str("the network of the model \"", name, "\" returned no array"));
  seen.results.replace(std::move(shape));
  return outputs;
}

std::shared_ptr<nn::Optimizer> PythonModel::optimizer() {
  get();
  if (!wanted_)
    throw FailedPreconditionError(
        str("the model \"", model_->name(), "\" was not compiled: call compile() first"));
  return wanted_->optimizer.get();
}

std::vector<std::string> PythonModel::output_names() const {
  return model_->predict_graph().output_names;
}

Model& PythonModel::get() {
  if (owner_ != nullptr) owner_->strategy();
  if (model_ == nullptr) throw FailedPreconditionError("the model was let go of");
  return *model_;
}

nb::handle PythonModel::network() const {
  if (callable_ == nullptr) throw FailedPreconditionError("the model was let go of");
  return callable_->get();
}

void PythonModel::compile(CompileOptions options, Kept kept) {
  get().compile(options);
  wanted_ = std::move(options);
  compiled_ = std::move(kept);
  applied_.clear();
}

void PythonModel::prepare(const Dataset& batches, const std::string& weights) {
  const ElementSpec& spec = batches.element_spec();
  choose_labels(spec, weights);
  if (batches.batched()) build(spec);
}

void PythonModel::build(const ElementSpec& batches) {
  ElementSpec features = batches;
  std::erase_if(features.columns, [&](const ColumnSpec& column) {
    return column.name == batches.label || seen_->hidden.contains(column.name);
  });
  features.label.clear();
  Model& model = get();
  released([&] { model.build(features); });
}

void PythonModel::choose_labels(const ElementSpec& batches, const std::string& weights) {
  seen_->hidden = {kWeightsColumn};
  if (!wanted_) return;
  CompileOptions now = *wanted_;
  if (!weights.empty()) now.sample_weight = weights;
  std::string text = now.sample_weight;
  if (!now.sample_weight.empty()) seen_->hidden.insert(now.sample_weight);
  for (auto& [name, output] : now.outputs) {
    const auto is_it = [&own = name](const ColumnSpec& each) { return each.name == own; };
    const bool has = std::any_of(batches.columns.begin(), batches.columns.end(), is_it);
    if (output.label.empty() && has && name != batches.label) output.label = name;
    if (!output.label.empty()) seen_->hidden.insert(output.label);
    text += str("/", output.label);
  }
  const bool as_wanted = applied_.empty() && now.sample_weight == wanted_->sample_weight &&
                         std::all_of(now.outputs.begin(), now.outputs.end(), [&](const auto& each) {
                           return each.second.label == wanted_->outputs.at(each.first).label;
                         });
  if (as_wanted || text == applied_) return;
  get().compile(std::move(now));
  applied_ = text;
}

int PythonModel::traverse(visitproc visit, void* argument) const {
  if (const int stopped = network_.traverse(visit, argument)) return stopped;
  if (const int stopped = strategy_.traverse(visit, argument)) return stopped;
  return compiled_.traverse(visit, argument);
}

void PythonModel::clear() {
  model_.reset();
  wanted_.reset();
  callable_.reset();
  strategy_object_.reset();
  network_.clear();
  compiled_.clear();
  strategy_.clear();
  drop_references();
}

namespace {

// ---- compile ----

std::vector<MetricChoice> metrics_of(nb::handle list, Kept& kept) {
  std::vector<MetricChoice> all;
  if (list.is_none()) return all;
  if (nb::isinstance<nb::str>(list) || !nb::isinstance<nb::sequence>(list))
    type_error(str("`metrics` is a list of metrics, or a dict of such lists by output, not ",
                   described(list)));
  for (nb::handle each : list) all.emplace_back(metric_of(each, kept));
  return all;
}

std::string text_of(nb::handle object, const char* otherwise) {
  if (!nb::isinstance<nb::str>(object)) throw nb::type_error(str("compile: ", otherwise).c_str());
  return nb::cast<std::string>(object);
}

// The value of that output in a dict; None: there is none.
nb::object of_output(nb::handle given, const std::string& name) {
  if (!nb::isinstance<nb::dict>(given)) return nb::none();
  return given.attr("get")(name, nb::none());
}

void check_outputs(nb::handle given, const CompileOptions& options, const char* what) {
  if (given.is_none()) return;
  if (!nb::isinstance<nb::dict>(given))
    throw nb::type_error(
        str("compile: where `loss` is a dict by output, `", what, "` is one, too").c_str());
  for (auto [name, value] : nb::borrow<nb::dict>(given)) {
    const std::string text = text_of(name, "outputs are named by texts");
    if (!options.outputs.contains(text))
      throw InvalidArgumentError(str("compile: `", what, "` names the output \"", text,
                                     "\", which has no loss: give it one, or None"));
  }
}

OptimizerChoice optimizer_of(nb::handle optimizer, Kept& kept) {
  if (optimizer.is_none()) return {"rmsprop"};  // the same one each time that steps are recorded
  if (nb::isinstance<nb::str>(optimizer)) return {nb::cast<std::string>(optimizer)};
  require_object(optimizer, "an optimizer");
  if (!nb::isinstance<OptimizerObject>(optimizer))
    type_error(
        str("an optimizer is a name, or one of cairn.optimizers, not ", described(optimizer)));
  kept.keep(optimizer);
  return {nb::cast<const OptimizerObject&>(optimizer).shared()};
}

struct Judging {
  nb::handle loss, metrics, evaluation_metrics, loss_weights, labels;
};
void judge_outputs(CompileOptions& options, const Judging& by, Kept& kept) {
  for (auto [key, loss] : nb::borrow<nb::dict>(by.loss)) {
    const std::string name = text_of(key, "outputs are named by texts");
    OutputOptions own{
        .loss = loss_of(loss, kept),
        .metrics = metrics_of(of_output(by.metrics, name), kept),
        .evaluation_metrics = metrics_of(of_output(by.evaluation_metrics, name), kept)};
    const nb::object weight = of_output(by.loss_weights, name);
    if (!weight.is_none() && !nb::try_cast(weight, own.loss_weight))
      throw nb::type_error(
          str("compile: the loss weight of the output \"", name, "\" is no number").c_str());
    const nb::object label = of_output(by.labels, name);
    if (!label.is_none()) own.label = text_of(label, "the label of an output is a column's name");
    options.outputs.emplace(name, std::move(own));
  }
  check_outputs(by.metrics, options, "metrics");
  check_outputs(by.evaluation_metrics, options, "evaluation_metrics");
  check_outputs(by.loss_weights, options, "loss_weights");
  check_outputs(by.labels, options, "labels");
}

void compile(PythonModel& model, nb::handle optimizer, nb::handle loss, nb::handle metrics,
             nb::handle evaluation_metrics, nb::handle loss_weights, nb::handle labels,
             nb::handle batch_loss, const std::string& sample_weight,
             std::int64_t steps_per_execution, const std::string& loss_scaling) {
  Kept kept;
  CompileOptions options;
  options.optimizer = optimizer_of(optimizer, kept);
  if (nb::isinstance<nb::dict>(loss)) {
    judge_outputs(options, {loss, metrics, evaluation_metrics, loss_weights, labels}, kept);
  } else {
    if (!loss_weights.is_none() || !labels.is_none())
      throw nb::type_error("compile: `loss_weights` and `labels` go with a dict of losses");
    options.loss = loss_of(loss, kept);
    options.metrics = metrics_of(metrics, kept);
    options.evaluation_metrics = metrics_of(evaluation_metrics, kept);
  }
  if (!batch_loss.is_none())
    options.batch_loss = [function = kept.keep(batch_loss)](const Outputs& outputs,
                                                            const Batch& batch) {
      const Acquired here;
      if (outputs.size() == 1 && outputs[0].first.empty())
        return array_of(call_recorded(function, outputs[0].second, batch));
      nb::dict named;
      for (const auto& [name, value] : outputs) named[name.c_str()] = nb::cast(value);
      return array_of(call_recorded(function, named, batch));
    };
  options.sample_weight = sample_weight;
  options.steps_per_execution = steps_per_execution;
  if (loss_scaling != "global_batch" && loss_scaling != "replica_mean")
    throw InvalidArgumentError(
        str("loss_scaling is \"global_batch\" or \"replica_mean\", not \"", loss_scaling, "\""));
  if (loss_scaling == "replica_mean") options.loss_scaling = LossScaling::kReplicaMean;
  model.compile(std::move(options), std::move(kept));
}

}  // namespace

void bind_compile(ModelClass& model) {
  model.def(
      "compile", &compile, "optimizer"_a = nb::none(), "loss"_a = nb::none(),
      "metrics"_a = nb::none(), nb::kw_only(), "evaluation_metrics"_a = nb::none(),
      "loss_weights"_a = nb::none(), "labels"_a = nb::none(), "batch_loss"_a = nb::none(),
      "sample_weight"_a = "", "steps_per_execution"_a = 1, "loss_scaling"_a = "global_batch",
      nb::sig("def compile(self, optimizer: str | Optimizer | None = None, loss: "
              "cairn.typing.LossLike | collections.abc.Mapping[str, cairn.typing.LossLike] = None, "
              "metrics: cairn.typing.MetricsLike = None, *, evaluation_metrics: "
              "cairn.typing.MetricsLike = None, loss_weights: collections.abc.Mapping[str, float] "
              "| None = None, labels: collections.abc.Mapping[str, str] | None = None, batch_loss: "
              "collections.abc.Callable[[typing.Any, Batch], Array] | None = None, sample_weight: "
              "str = '', steps_per_execution: int = 1, loss_scaling: str = 'global_batch') -> "
              "None"),
      R"(How it is trained and judged.

Of several outputs, `loss` is a dict by their names, and `metrics`, `loss_weights` and `labels` are
such dicts, too; the label of an output is the column of its name unless `labels` has another.
`sample_weight` names a column of a dataset.

>>> model = cairn.Model(cairn.nn.Dense(1))
>>> model.compile(cairn.optimizers.Adam(0.01), "mse", ["mae", cairn.nn.RootMeanSquaredError()]))");
}

}  // namespace cairn::python
