#include "tools/job/spec/job_retrieval.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/known_name.h"

namespace cairn::tools {
namespace {

// As [features] names them.
std::vector<std::string> feature_names(const JobFeatures& features) {
  std::vector<std::string> names;
  for_each_named_column(features, [&](const std::string& key, const std::string& column) {
    if (key != "features.crosses" && key != "features.dates")
      names.push_back(key == "features.bucketised" ? column + "_bucket" : column);
  });
  for (const auto& [column, dates] : features.dates) {
    for (const DatePart part : dates.parts) names.push_back(str(column, "_", date_part_name(part)));
    if (dates.age) names.push_back(column + "_age");
  }
  for (const JobFeatures::Cross& cross : features.crosses)
    if (cross.deep) names.push_back(cross.name());
  return names;
}

// Every feature belongs to a tower, and every name is a feature.
void verify_towers(const Job& job, const PlaceOf& place) {
  const std::vector<std::string> known = feature_names(job.features);
  std::vector<std::string> used;
  for (const auto& [key, names] : {std::pair("model.query", &job.model.query),
                                   std::pair("model.candidate", &job.model.candidate)}) {
    if (names->empty())
      throw InvalidArgumentError(str(place(key), " names no feature: each tower needs some"));
    for (const std::string& name : *names) verify_known(place(key), name, known);
    used.insert(used.end(), names->begin(), names->end());
  }
  for (const std::string& name : known)
    if (std::ranges::find(used, name) == used.end())
      throw InvalidArgumentError(str(place("model.query"), ": \"", name,
                                     "\" is a feature, and neither model.query nor "
                                     "model.candidate names it: name it, or remove the feature"));
}

// Whether the job names columns, of which features are made.
bool names_columns(const JobFormat& format) {
  return format.form() == FeatureForm::kColumns && !format.fixed_columns();
}

// "csv and tfrecords"
std::string formats_with_names() {
  std::vector<std::string> names;
  for (const JobFormatPtr& format : job_formats())
    if (names_columns(*format)) names.emplace_back(format->name());
  std::string all = names.front();
  for (std::size_t i = 1; i < names.size(); ++i)
    all += str(i + 1 == names.size() ? " and " : ", ", names[i]);
  return all;
}

}  // namespace

void verify_retrieval(const Job& job, const PlaceOf& place) {
  const JobModel& model = job.model;
  const JobData& data = job.data;
  const auto refuse = [&](const std::string& key, const std::string& why) {
    throw InvalidArgumentError(str(place(key), why));
  };
  const bool retrieves = model.objective == "retrieval";
  if (retrieves != (model.kind == "two_tower"))
    refuse("model.kind", str(" is \"", model.kind, "\", and model.objective \"", model.objective,
                             "\": \"two_tower\" and \"retrieval\" go together"));
  if (!retrieves) {
    if (!data.candidate.empty())
      refuse("data.candidate", " is of model.objective = \"retrieval\": remove it, or set that");
    return;
  }
  if (!names_columns(data.form()))
    refuse("model.objective", str(" is \"retrieval\", which reads ", formats_with_names(),
                                  ", and data.format is \"", data.format, "\""));
  if (!data.label().empty())
    refuse(data.label_key(),
           ": model.objective = \"retrieval\" has no label, since every row is a "
           "query with a candidate that belongs to it: remove it, and choose "
           "such rows with data.where");
  if (data.candidate.empty())
    refuse("model.objective",
           " is \"retrieval\": name with data.candidate the column that says "
           "which candidate a row has");
  if (model.hidden.empty())
    refuse("model.hidden", " is empty: its last number is the width of the towers' vectors");
  if (!(model.temperature > 0 && model.temperature <= 1e6))
    refuse("model.temperature",
           str(" is ", model.temperature, ": a number above 0, at most 1e6, is wanted"));
  verify_towers(job, place);
}

}  // namespace cairn::tools
