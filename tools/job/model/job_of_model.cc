#include "tools/job/model/job_of_model.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <variant>

#include "core/base/error.h"
#include "core/base/json.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage_spec.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/parts/job_source.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

// Writes format and delimiter of the training data into the job. A job file may leave both to the
// names of the training files, and these files have other names.
void say_form(const SavedModel& model, toml::table& data) {
  const StageSpec* source = model.examples.last().get();
  while (source->input) source = source->input.get();
  if (const FileSource* files = file_source_of(*source)) name_format(*files, data);
}

}  // namespace

Job job_of_model(const SavedModel& model, const std::vector<std::string>& given,
                 bool skip_bad_rows) {
  const Json metadata = parse_json(model.metadata, "the model's metadata");
  const auto text = metadata.find("toml");
  if (text == metadata.end() || !text->is_string() || !model.examples.defined())
    throw FailedPreconditionError(
        str("the model in ", model.folder, " is not of `cairn train`, whose job file says how ",
            "models are judged: call Model::evaluate() in the program that made it"));
  toml::array paths;
  for (const std::string& file : given) paths.push_back(std::filesystem::absolute(file).string());
  const std::string name = str("the job file in ", model.folder);
  toml::table job = toml::parse(text->get<std::string>(), name);
  toml::table* const data = job["data"].as_table();
  if (data == nullptr) throw DataLossError(str(name, " has no [data]"));
  say_form(model, *data);
  data->insert_or_assign("train", paths);
  data->insert_or_assign("test", paths);
  data->erase("service");
  if (skip_bad_rows) data->insert_or_assign("skip_bad_rows", true);
  job.erase("validation");
  if (toml::table* const trained = job["model"].as_table()) trained->erase("threshold");
  std::ostringstream out;
  out << job;
  return parse_job(out.str(), name);
}

Dataset raw_examples(const Job& job) { return eval_data(job).back().data; }

Dataset labelled_examples(const Job& job, const SavedModel& model) {
  const Dataset raw = raw_examples(job);
  const auto* features = std::get_if<FeaturesSpec>(&model.examples.last()->kind);
  if (features == nullptr) return raw;
  std::vector<FeatureColumn> columns = features->columns;
  const auto has = [&columns](const std::string& name) {
    return std::ranges::find(columns, name, &FeatureColumn::name) != columns.end();
  };
  const std::string& group = job.data.identity();
  if (!job.data.weight.empty()) columns.push_back(FeatureColumn::as_is(job.data.weight));
  if (!group.empty() && job.data.has_columns()) columns.push_back(group_column(job));
  if (!job.data.has_columns() && !group.empty() && !has(group))
    columns.push_back(FeatureColumn::as_is(group));
  return raw.features(std::move(columns));
}

}  // namespace cairn::tools
