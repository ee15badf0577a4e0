#include "model/step_functions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/graph/ops.h"
#include "nn/base/layer.h"
#include "nn/base/step_members.h"
#include "nn/base/training_scope.h"
#include "nn/losses/added_losses.h"
#include "strategy/base/replica_context.h"

namespace cairn {
namespace {

const Array& output_named(const Outputs& outputs, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [each, value] : outputs) {
    if (each == name || (name.empty() && outputs.size() == 1)) return value;
    names.push_back(each);
  }
  const std::string near = nearest_name(name, names);
  if (name.empty())
    throw InvalidArgumentError(str("the network has ", outputs.size(),
                                   " outputs, and compile() was told of one: say in ",
                                   "`outputs` how each of them is judged"));
  throw InvalidArgumentError(str("compile() names the output \"", name,
                                 "\", which the network does not have",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

const Array& label_of(const Batch& batch, const std::string& column, const std::string& output) {
  if (!column.empty()) return batch.features[column];
  if (batch.label.defined()) return batch.label;
  throw InvalidArgumentError(
      str("the model", output.empty() ? "" : "'s output \"" + output + "\"",
          " has a loss or a metric, and the dataset names no label: name one where the dataset is "
          "made, or in compile()"));
}

std::string joined(const std::string& output, const std::string& metric) {
  return output.empty() ? metric : output + "_" + metric;
}

// A prediction [b, 1] and a label [b] broadcast to [b, b] in a loss of the program's own, which
// would train on nonsense; so each loss is looked at.
Array one_per_example(const Array& losses, const std::string& what) {
  const Array each = nn::per_example(losses, what);
  if (each.dtype() == DType::kFloat32) return each;
  throw InvalidArgumentError(str(what, " must be float32; it is ", each.type().to_string()));
}

Array count_of(const Array& total) { return cast(dim_size(total, 0), DType::kFloat32); }

// Undefined if nothing was added.
Array sum_of(const nn::AddedLosses& added) {
  Array sum;
  for (const Array& term : added.terms()) sum = sum.defined() ? sum + term : term;
  return sum;
}

// [sum of the losses of all examples, their number]: what nn::Mean adds up.
Array mean_summary(const Array& losses, const Array& added) {
  const Array count = count_of(losses);
  Array total = sum(losses);
  if (added.defined()) total = total + added * count;
  return stack({total, count}, 0);
}

// A mean of losses has no predictions to look at: the step records its summary by itself.
class LossMean final : public nn::Metric {
 public:
  const std::string& name() const override { return mean_.name(); }
  nn::Direction direction() const override { return nn::Direction::kFalls; }
  Array summary(const Array& losses, const Array&, const Array&) const override {
    return mean_.summary(losses);
  }
  void add(const Tensor& summary) override { mean_.add(summary); }
  double result() const override { return mean_.result(); }
  void reset() override { mean_.reset(); }
  std::unique_ptr<nn::Metric> clone() const override { return std::make_unique<LossMean>(); }

 private:
  nn::Mean mean_{"loss"};
};

}  // namespace

StepFunctions::StepFunctions(Network network, CompileOptions options)
    : network_(std::move(network)), options_(std::move(options)) {
  if (options_.optimizer.get() == nullptr) options_.optimizer = OptimizerChoice("rmsprop");
  verify_options();
  if (options_.outputs.empty())
    judged_.push_back({"",
                       {.loss = options_.loss,
                        .metrics = options_.metrics,
                        .evaluation_metrics = options_.evaluation_metrics}});
  for (const auto& [name, output] : options_.outputs) judged_.push_back({name, output});
  metrics_.push_back({"loss", std::make_shared<LossMean>()});
  if (judged_.size() > 1)
    for (const Judged& output : judged_)
      metrics_.push_back({joined(output.name, "loss"), std::make_shared<LossMean>()});
  for (const Judged& output : judged_)
    for (const MetricChoice& metric : output.options.metrics)
      metrics_.push_back(
          {joined(output.name, metric.get()->name()), metric.get(), output.options.label});
  test_metrics_ = metrics_;
  for (const Judged& output : judged_)
    for (const MetricChoice& metric : output.options.evaluation_metrics)
      test_metrics_.push_back(
          {joined(output.name, metric.get()->name()), metric.get(), output.options.label});
}

void StepFunctions::verify_options() const {
  if (options_.steps_per_execution < 1)
    throw InvalidArgumentError(
        str("compile: steps_per_execution must be at least 1, got ", options_.steps_per_execution));
  const bool single =
      options_.loss.defined() || !options_.metrics.empty() || !options_.evaluation_metrics.empty();
  if (single && !options_.outputs.empty())
    throw InvalidArgumentError(
        "compile: either `loss` and `metrics`, of a model of one output, or `outputs`");
  const auto has_loss = [](const auto& output) { return output.second.loss.defined(); };
  if (options_.batch_loss &&
      (options_.loss.defined() || std::ranges::any_of(options_.outputs, has_loss)))
    throw InvalidArgumentError(
        "compile: either `batch_loss` or a loss of its own for each output; both are given");
  const auto verify_metrics = [](const std::vector<MetricChoice>& metrics) {
    for (const MetricChoice& metric : metrics)
      if (metric.get() == nullptr)
        throw InvalidArgumentError("compile: one of the metrics is null");
  };
  verify_metrics(options_.metrics);
  verify_metrics(options_.evaluation_metrics);
  for (const auto& [name, output] : options_.outputs) {
    verify_metrics(output.metrics);
    verify_metrics(output.evaluation_metrics);
    const bool judged = !output.metrics.empty() || !output.evaluation_metrics.empty();
    if (!output.loss.defined() && output.loss_weight != 1)
      throw InvalidArgumentError(
          str("compile: the output \"", name, "\" has a loss_weight and no loss"));
    if (!output.loss.defined() && !judged && !output.label.empty())
      throw InvalidArgumentError(
          str("compile: the output \"", name, "\" has a label, and no loss or metric of it"));
  }
}

Array StepFunctions::weights_of(const Outputs& outputs, const Batch& batch,
                                const Weighing& weighing) const {
  Array weights;
  const std::string& own = options_.sample_weight;
  if (!own.empty() && !weighing.column.empty() && own != weighing.column)
    throw InvalidArgumentError(str("compile() names \"", own, "\" as the column of weights, and ",
                                   "`sample_weight` of arrays is the column \"", weighing.column,
                                   "\": leave one of them out"));
  const std::string& column = own.empty() ? weighing.column : own;
  if (!column.empty())
    weights =
        nn::per_example(nn::to_float(batch.features[column]), str("the column \"", column, "\""));
  if (weighing.class_weight.empty()) return weights;
  const Array of_class = by_class(outputs, batch, weighing.class_weight);
  return weights.defined() ? weights * of_class : of_class;
}

// A weight of a class that no label can have would be one that does nothing.
Array StepFunctions::by_class(const Outputs& outputs, const Batch& batch,
                              const std::map<std::int64_t, float>& class_weight) const {
  if (judged_.size() > 1)
    throw InvalidArgumentError(str("fit: class_weight is of models with one output, and this one ",
                                   "has ", judged_.size(),
                                   ": weigh their examples by a column that compile() names"));
  const Judged& judged = judged_.front();
  const Array label = label_of(batch, judged.options.label, "");
  const bool classifies = judged.options.loss.input() != nn::LossInput::kNumbers;
  std::int64_t least = 0, count = std::max<std::int64_t>(2, std::ssize(class_weight));
  const auto columns = [](const Array& x) { return x.rank() == 2 ? x.shape()[1] : 1; };
  const std::int64_t classes =
      std::max(columns(label), outputs.size() == 1 ? columns(outputs[0].second) : 1);
  if (classes > 1)
    count = classes;
  else if (classifies)
    count = 2;
  else
    least = -1;  // of margins
  for (const auto& [key, weight] : class_weight)
    if (key < least || key >= count)
      throw InvalidArgumentError(str("fit: class_weight names the class ", key,
                                     ", which no label can be: the classes are ", least, " to ",
                                     count - 1));
  return nn::class_weights(label, class_weight);
}

StepFunctions::Losses StepFunctions::losses_of(const Outputs& outputs, const Batch& batch,
                                               const Weighing& weighing) const {
  Losses made;
  made.weights = weights_of(outputs, batch, weighing);
  const auto weighted = [&](const Array& losses, const std::string& what) {
    const Array each = one_per_example(losses, what);
    return made.weights.defined() ? each * made.weights : each;
  };
  if (options_.batch_loss)
    made.total = weighted(options_.batch_loss(outputs, batch), "compile: batch_loss");
  for (const Judged& output : judged_) {
    if (!output.options.loss.defined()) {
      if (judged_.size() > 1) made.own.push_back(Array());
      continue;
    }
    const Array prediction = output_named(outputs, output.name);
    const Array label = label_of(batch, output.options.label, output.name);
    Array losses = weighted(
        output.options.loss(prediction, label),
        str("compile: the loss \"", output.options.loss.name(), "\", of a prediction ",
            prediction.type().to_string(), " and a label ", label.type().to_string(), ","));
    if (judged_.size() > 1) made.own.push_back(losses);
    if (output.options.loss_weight != 1) losses = losses * Array(output.options.loss_weight);
    made.total = made.total.defined() ? made.total + losses : losses;
  }
  if (!made.total.defined())
    throw InvalidArgumentError(
        "compile() was told of no loss: the model cannot be trained or "
        "evaluated without one");
  return made;
}

// The loss of one share of a step's examples, scaled so that the losses and the gradients of all
// shares add up to those of the whole batch. Members of a round have equal shares, and cannot ask
// each other for their sizes.
Array StepFunctions::share_of_loss(const Array& total, const Shares& shares) const {
  const Array own = count_of(total);
  if (shares.count == 1) return sum(total) / maximum(own, Array(1.0f));
  const bool by_replica =
      !shares.are_replicas || options_.loss_scaling == LossScaling::kReplicaMean;
  const Array count = by_replica
                          ? own * Array(static_cast<float>(shares.count))
                          : cast(all_reduce(ReduceOp::kSum, dim_size(total, 0)), DType::kFloat32);
  return sum(total) / maximum(count, Array(1.0f));
}

std::vector<Array> StepFunctions::summaries(const Outputs& outputs, const Batch& batch,
                                            const Losses& losses, const Array& added) const {
  std::vector<Array> all{mean_summary(losses.total, added)};
  if (judged_.size() > 1)
    for (const Array& own : losses.own)
      all.push_back(own.defined() ? mean_summary(own, {})
                                  : Array(Tensor::zeros(DType::kFloat32, {2})));
  for (const Judged& output : judged_)
    add_summaries(all, output.options.metrics, output, outputs, batch, losses.weights);
  return all;
}

void StepFunctions::add_summaries(std::vector<Array>& all, const std::vector<MetricChoice>& metrics,
                                  const Judged& of, const Outputs& outputs, const Batch& batch,
                                  const Array& weights) const {
  for (const MetricChoice& metric : metrics) {
    const Array& given = output_named(outputs, of.name);
    const bool probabilities = metric.get()->input(given) == nn::MetricInput::kProbabilities;
    const Array prediction =
        probabilities ? nn::probabilities_of(of.options.loss.input(), given) : given;
    all.push_back(
        metric.get()->summary(prediction, label_of(batch, of.options.label, of.name), weights));
  }
}

Outputs StepFunctions::train(const Iterator& input, std::int64_t steps, const Shares& shares,
                             const Weighing& weighing) const {
  Array loss;
  std::vector<Array> sums;
  for (std::int64_t step = 0; step < steps; ++step) {
    const nn::TrainingScope training;
    const nn::StepMembers members(shares.are_replicas ? 1 : shares.count);
    const nn::AddedLosses added;
    const Batch batch = input.get_next();
    const Outputs outputs = network_(batch.features);
    const Losses losses = losses_of(outputs, batch, weighing);
    loss = share_of_loss(losses.total, shares);
    const Array terms = sum_of(added);
    if (terms.defined()) loss = loss + terms / Array(static_cast<float>(shares.count));
    const std::vector<Array> own = summaries(outputs, batch, losses, terms);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (step == 0)
        sums.push_back(own[i]);
      else
        sums[i] = sums[i] + own[i];
    options_.optimizer.get()->minimize(loss);
  }
  Outputs all{{"", loss}};
  for (const Array& sum : sums) all.emplace_back("", sum);
  return all;
}

Outputs StepFunctions::test(const Iterator& input, const std::string& weights) const {
  const nn::TrainingScope inference(false);
  const nn::AddedLosses added;
  const Batch batch = input.get_next();
  const Outputs outputs = network_(batch.features);
  const Losses losses = losses_of(outputs, batch, {.column = weights});
  const Array terms = sum_of(added);
  std::vector<Array> sums = summaries(outputs, batch, losses, terms);
  for (const Judged& output : judged_)
    add_summaries(sums, output.options.evaluation_metrics, output, outputs, batch, losses.weights);
  Outputs all;
  for (const Array& sum : sums) all.emplace_back("", sum);
  return all;
}

Outputs StepFunctions::predict(const Features& features) const {
  const nn::TrainingScope inference(false);
  return network_(features);
}

}  // namespace cairn
