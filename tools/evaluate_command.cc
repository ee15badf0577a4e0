#include "tools/evaluate_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>

#include "core/base/json.h"
#include "core/graph/ops.h"
#include "data/dataset_iterator.h"
#include "data/stage_spec.h"
#include "model/loaded_model.h"
#include "tools/job_lists.h"
#include "tools/job_objective.h"
#include "tools/job_source.h"
#include "tools/job_warnings.h"
#include "tools/model_options.h"
#include "tools/toml_table.h"
#include "tools/trained_model.h"

namespace cairn::tools {
namespace {

struct EvaluateRequest : ModelOptions {
  bool as_json = false;
};

// The job that trained the model, with these files as its test data: it says what a label means,
// which rows count, and which metrics judge the model.
Job job_over(const SavedModel& model, const std::vector<std::string>& files) {
  const Json metadata = parse_json(model.metadata, "the model's metadata");
  const auto text = metadata.find("toml");
  if (text == metadata.end() || !text->is_string() || !model.examples.defined())
    throw FailedPreconditionError(
        str("the model in ", model.folder, " is not of `cairn train`, whose job file says how ",
            "models are judged: call Model::evaluate() in the program that made it"));
  toml::array paths;
  for (const std::string& file : files) paths.push_back(std::filesystem::absolute(file).string());
  const std::string name = str("the job file in ", model.folder);
  toml::table job = toml::parse(text->get<std::string>(), name);
  toml::table* const data = job["data"].as_table();
  if (data == nullptr) throw DataLossError(str(name, " has no [data]"));
  data->insert_or_assign("train", paths);
  data->insert_or_assign("test", paths);
  data->erase("service");
  job.erase("validation");
  std::ostringstream out;
  out << job;
  return parse_job(out.str(), name);
}

// What the model's features make of the job's test data, whose label and weights stay.
Dataset judged_examples(const Job& job, const SavedModel& model) {
  const Dataset raw = judged_data(job).back().data;
  const auto* features = std::get_if<FeaturesSpec>(&model.examples.last()->kind);
  if (features == nullptr) return raw;
  std::vector<FeatureColumn> columns = features->columns;
  if (!job.data.weight.empty()) columns.push_back(FeatureColumn::as_is(job.data.weight));
  if (!job.data.group.empty()) columns.push_back(group_column(job));
  return raw.features(std::move(columns));
}

// The metrics' results, and how many examples there were.
struct Judged {
  std::int64_t examples = 0;
  RankedLists::Metrics metrics;
};

// Metrics of lists wait for the scores of all examples.
Judged judge(LoadedModel& model, const Job& job, const EvaluateRequest& request, LinesRead& met) {
  const Objective objective(job);
  const auto metrics = objective.metrics();
  const Dataset batches = judged_examples(job, model.about()).batch(request.batch);
  const ElementSpec spec = batches.element_spec();
  const auto column = [&spec](const Element& batch, const std::string& name) {
    return batch[spec.find(name)];
  };
  const std::string group = job.data.has_columns() ? group_column(job).name : job.data.group;
  RankedLists lists("--data");
  std::vector<float> scores;
  const auto add_to_lists = [&](const Element& batch, const Array& score, const Array& truth,
                                const Array& weights) {
    const Tensor list = cast(Array(column(batch, group)), DType::kInt64).eval();
    const Tensor relevance = truth.eval(), weight = weights.defined() ? weights.eval() : Tensor();
    lists.add(list.values<std::int64_t>(), relevance.values<float>(),
              weight.defined() ? weight.values<float>() : std::span<const float>());
    const Tensor all = score.eval();
    scores.insert(scores.end(), all.values<float>().begin(), all.values<float>().end());
  };
  const auto elements = open(batches, {}, {.line_events = events_into(met)});
  Judged judged;
  while (const auto batch = elements->next()) {
    Element taken;
    for (const ColumnSpec& wanted : model.about().input.columns)
      taken.push_back(column(*batch, wanted.name));
    const Array predicted = model.predict(taken).at(0);
    const Array truth = objective.truth(column(*batch, spec.label));
    Array weights;
    if (!job.data.weight.empty())
      weights = cast(Array(column(*batch, job.data.weight)), DType::kFloat32);
    if (!job.data.group.empty())
      add_to_lists(*batch, predicted, truth, weights);
    else
      for (const auto& metric : metrics)
        metric->add(metric->summary(predicted, truth, weights).eval());
    judged.examples += truth.shape()[0];
  }
  met.skipped = elements->skipped();
  if (!job.data.group.empty()) {
    lists.finish();
    judged.metrics = lists.judge(scores, metrics);
    return judged;
  }
  for (const auto& metric : metrics) judged.metrics.emplace_back(metric->name(), metric->result());
  return judged;
}

int evaluate(const EvaluateRequest& request) {
  LoadedModel model = LoadedModel::load(model_at(request.model), request.device);
  const Job job = job_over(model.about(), request.files);
  LinesRead met;
  const auto [examples, metrics] = judge(model, job, request, met);
  refuse_empty_files(met, "--data");
  if (examples == 0) throw InvalidArgumentError("--data: no example is left to judge the model on");
  if (const std::string text = skipped_rows_text(met, "--data"); !text.empty())
    std::fprintf(stderr, "%s\n", text.c_str());
  if (request.as_json) {
    Json all = {{"examples", examples}, {"metrics", Json::object()}};
    for (const auto& [name, value] : metrics) all["metrics"][name] = value;
    std::printf("%s\n", json_text(all, 2).c_str());
    return 0;
  }
  std::printf("%lld examples:", static_cast<long long>(examples));
  for (const auto& [name, value] : metrics) std::printf("  %s %.4f", name.c_str(), value);
  std::printf("\n");
  return 0;
}

}  // namespace

void add_evaluate_command(CLI::App& app, int& status) {
  auto request = std::make_shared<EvaluateRequest>();
  CLI::App* command = app.add_subcommand(
      "evaluate", "Judge a model that `cairn train` has saved on files with labels");
  add_model_options(*command, *request, "Files in the form of the training data, with labels");
  command->add_flag("--json", request->as_json, "As JSON");
  command->callback([request, &status] { status = evaluate(*request); });
}

}  // namespace cairn::tools
