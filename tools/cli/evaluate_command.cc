#include "tools/cli/evaluate_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "model/saved/loaded_model.h"
#include "nn/metrics/classification_metrics.h"
#include "tools/cli/model_options.h"
#include "tools/job/model/calibration.h"
#include "tools/job/model/job_of_model.h"
#include "tools/job/model/trained_model.h"
#include "tools/job/parts/job_lists.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/parts/label_texts.h"
#include "tools/job/parts/label_warnings.h"
#include "tools/job/spec/job_metrics.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {
namespace {

struct EvaluateRequest : ModelOptions {
  bool as_json = false;
  std::string calibrate;  // a method; empty: the model stays as it is
};

// The metrics' results, and how many examples there were.
struct EvaluatedFiles {
  std::int64_t examples = 0;
  RankedLists::Metrics metrics;
};

// One batch: what the model gives for it, and the columns that evaluate that.
struct PredictedBatch {
  std::vector<Array> outputs;
  Array truth, weights, groups;  // undefined: the job has none
  Array decision;                // undefined: the model has no threshold
};

// Takes batch after batch.
class Collector {
 public:
  virtual ~Collector() = default;
  virtual void add(const PredictedBatch& batch) = 0;
  virtual RankedLists::Metrics result() = 0;
};

class Summaries final : public Collector {
 public:
  explicit Summaries(const Job& job) : metrics_(make_metrics(job, MetricOf::kExamples)) {}
  void add(const PredictedBatch& batch) override {
    for (const auto& metric : metrics_)
      metric->add(metric->summary(batch.outputs.front(), batch.truth, batch.weights).eval());
  }
  RankedLists::Metrics result() override {
    RankedLists::Metrics results;
    for (const auto& metric : metrics_) results.emplace_back(metric->name(), metric->result());
    return results;
  }

 private:
  std::vector<std::unique_ptr<nn::Metric>> metrics_;
};

// Metrics of lists and of retrieval wait for the scores or vectors of all examples.
template <typename Lists>
class Ranks final : public Collector {
 public:
  Ranks(const Job& job, Lists lists)
      : metrics_(make_metrics(job, MetricOf::kLists)), lists_(std::move(lists)) {}
  void add(const PredictedBatch& batch) override {
    const Tensor groups = cast(batch.groups, DType::kInt64).eval();
    const Tensor weights = batch.weights.defined() ? batch.weights.eval() : Tensor();
    const auto weight = weights.defined() ? weights.values<float>() : std::span<const float>();
    Tensor values;
    if constexpr (std::is_same_v<Lists, RankedLists>) {
      const Tensor relevance = batch.truth.eval();
      lists_.add(groups.values<std::int64_t>(), relevance.values<float>(), weight);
      values = batch.outputs.front().eval();
    } else {
      lists_.add(groups.values<std::int64_t>(), weight);
      values = concat({batch.outputs.at(1), batch.outputs.at(2)}, 1).eval();
    }
    values_.insert(values_.end(), values.values<float>().begin(), values.values<float>().end());
  }
  RankedLists::Metrics result() override {
    if constexpr (std::is_same_v<Lists, RankedLists>) lists_.finish();
    return lists_.evaluate(values_, metrics_);
  }

 private:
  std::vector<std::unique_ptr<nn::Metric>> metrics_;
  Lists lists_;
  std::vector<float> values_;
};

// Collects for a binary model that has metrics of examples and metrics of lists.
class Both final : public Collector {
 public:
  explicit Both(const Job& job) : job_(job), examples_(job), lists_(job, RankedLists("--data")) {}
  void add(const PredictedBatch& batch) override {
    examples_.add(batch);
    lists_.add(batch);
  }
  RankedLists::Metrics result() override {
    return in_order(job_, examples_.result(), lists_.result());
  }

 private:
  const Job& job_;
  Summaries examples_;
  Ranks<RankedLists> lists_;
};

// Adds metrics of the decisions of a model with a threshold to what `others` collects.
class Decisions final : public Collector {
 public:
  explicit Decisions(std::unique_ptr<Collector> others) : others_(std::move(others)) {}
  void add(const PredictedBatch& batch) override {
    others_->add(batch);
    const Array decision = cast(batch.decision, DType::kFloat32);
    for (nn::Metric* metric : std::initializer_list<nn::Metric*>{&accuracy_, &precision_, &recall_})
      metric->add(metric->summary(decision, batch.truth, batch.weights).eval());
  }
  RankedLists::Metrics result() override {
    RankedLists::Metrics results = others_->result();
    const double precision = precision_.result(), recall = recall_.result();
    const double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    for (const auto& [name, value] :
         {std::pair("accuracy", accuracy_.result()), std::pair("precision", precision),
          std::pair("recall", recall), std::pair("f1", f1)})
      results.emplace_back(str("decision_", name), value);
    return results;
  }

 private:
  std::unique_ptr<Collector> others_;
  nn::Accuracy accuracy_;
  nn::Precision precision_;
  nn::Recall recall_;
};

std::unique_ptr<Collector> collector_of(const Job& job) {
  if (job.model.objective == "ranking")
    return std::make_unique<Ranks<RankedLists>>(job, RankedLists("--data"));
  if (job.model.objective == "retrieval")
    return std::make_unique<Ranks<Retrieval>>(job, Retrieval());
  if (!metric_of_lists(job).empty()) return std::make_unique<Both>(job);
  return std::make_unique<Summaries>(job);
}

// `calibration` takes every batch, too, if there is one.
EvaluatedFiles evaluate(LoadedModel& model, const Job& job, const EvaluateRequest& request,
                        LinesRead& met, ModelCalibration* calibration) {
  const Objective objective(job);
  std::unique_ptr<Collector> collector = collector_of(job);
  const auto& outputs = model.about().outputs;
  const auto decision = std::ranges::find(outputs, "decision", &ColumnSpec::name);
  const bool decides = decision != outputs.end() && job.model.objective == "binary";
  if (decides) collector = std::make_unique<Decisions>(std::move(collector));
  const Dataset batches = labelled_examples(job, model.about()).batch(request.batch);
  const ElementSpec spec = batches.element_spec();
  const std::string group = job.data.identity().empty() || !job.data.has_columns()
                                ? job.data.group
                                : group_column(job).name;
  const auto elements =
      open(batches, {}, {.line_events = events_into(met), .pipes = Pipes::kReadOnce});
  EvaluatedFiles evaluated;
  while (const auto batch = elements->next()) {
    const auto column = [&](const std::string& name) { return (*batch)[spec.find(name)]; };
    Element taken;
    for (const ColumnSpec& wanted : model.about().input.columns)
      taken.push_back(column(wanted.name));
    PredictedBatch predicted;
    for (const auto& output : model.predict(taken)) predicted.outputs.emplace_back(output);
    if (decides)
      predicted.decision = predicted.outputs[static_cast<std::size_t>(decision - outputs.begin())];
    if (!spec.label.empty()) predicted.truth = objective.truth(column(spec.label));
    if (!job.data.weight.empty())
      predicted.weights = cast(Array(column(job.data.weight)), DType::kFloat32);
    if (!group.empty()) predicted.groups = column(group);
    collector->add(predicted);
    if (calibration != nullptr)
      calibration->add(predicted.outputs, predicted.truth, predicted.weights);
    evaluated.examples += predicted.outputs.front().shape()[0];
  }
  met.skipped = elements->skipped();
  if (evaluated.examples > 0) evaluated.metrics = collector->result();
  return evaluated;
}

// A pipe cannot be read once more for its labels.
std::string no_positive_text(const Job& job, const EvaluateRequest& request) {
  const auto is_file = [](const std::string& path) {
    return std::filesystem::is_regular_file(path);
  };
  if (!std::ranges::all_of(request.paths(), is_file)) return "";
  return no_positive_warning(job, job.data.test, job.data.test_where, "--data");
}

std::optional<ModelCalibration> calibration_for(const SavedModel& model, const Job& job,
                                                const EvaluateRequest& request) {
  if (request.calibrate.empty()) return std::nullopt;
  return std::optional<ModelCalibration>(std::in_place, model, job, request.calibrate);
}

// Runs before the metrics are printed: an error here would otherwise hide behind them.
std::optional<CalibrationOutcome> kept_calibration(std::optional<ModelCalibration>& calibration) {
  if (!calibration) return std::nullopt;
  CalibrationOutcome outcome = calibration->keep();
  if (!outcome.warning.empty()) std::fprintf(stderr, "%s\n", outcome.warning.c_str());
  return outcome;
}

int evaluate(const EvaluateRequest& request) {
  LoadedModel model = LoadedModel::load(model_at(request.model), request.device);
  const Job job = job_of_model(model.about(), request.paths(), request.skip_bad_rows);
  std::optional<ModelCalibration> calibration = calibration_for(model.about(), job, request);
  LinesRead met;
  const auto [examples, metrics] =
      evaluate(model, job, request, met, calibration ? &*calibration : nullptr);
  if (const std::string text = no_positive_text(job, request); !text.empty())
    std::fprintf(stderr, "%s\n", text.c_str());
  if (const std::string text = passed_over_text(met, "--data", Speaker::kModelCommand);
      !text.empty())
    std::fprintf(stderr, "%s\n", text.c_str());
  if (examples == 0) throw InvalidArgumentError("--data: no example is left to judge the model on");
  for (const auto& [name, value] : metrics)
    if (const std::string why = std::isnan(value) ? why_not_a_number(name, "given") : "";
        !why.empty())
      std::fprintf(stderr, "warning: %s\n", why.c_str());
  const std::optional<CalibrationOutcome> kept = kept_calibration(calibration);
  if (request.as_json) {
    Json all = {{"examples", examples}, {"metrics", Json::object()}};
    for (const auto& [name, value] : metrics) all["metrics"][name] = value;
    if (kept) all["calibration"] = calibration_json(*kept);
    std::printf("%s\n", json_text(all, 2).c_str());
    return 0;
  }
  std::printf("%lld examples:", static_cast<long long>(examples));
  for (const auto& [name, value] : metrics) std::printf("  %s %.4f", name.c_str(), value);
  std::printf("\n");
  if (kept) std::printf("%s", calibration_text(*kept).c_str());
  return 0;
}

}  // namespace

void add_evaluate_command(CLI::App& app, int& status) {
  auto request = std::make_shared<EvaluateRequest>();
  CLI::App* command = app.add_subcommand(
      "evaluate", "Judge a model that `cairn train` has saved on files with labels");
  add_model_options(*command, *request,
                    "Files in the form of the training data, with labels; -: standard input");
  command->add_flag("--json", request->as_json, "As JSON");
  command
      ->add_option("--calibrate", request->calibrate,
                   "Fit the model's probabilities to these examples, and keep that in the model; "
                   "none: take it away")
      ->check(CLI::IsMember(calibration_methods()));
  command->callback([request, &status] { status = evaluate(*request); });
}

}  // namespace cairn::tools
