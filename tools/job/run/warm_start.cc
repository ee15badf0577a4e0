#include "tools/job/run/warm_start.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/checkpoint/manifest_io.h"
#include "coordinator/restore/name_pattern.h"
#include "coordinator/restore/restore_plan.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "model/fitted_columns.h"
#include "storage/any_disk.h"
#include "storage/base64.h"
#include "storage/manifest.h"
#include "tools/job/run/resume.h"
#include "tools/job/run/wide_rows.h"

namespace cairn::tools {
namespace {

// An optimizer's count of steps, by which its learning rate may go.
constexpr const char* kCounts = "*/iterations";

// The feature that a table of a job's model is of: "deep/COLUMN", or the second one of deepfm.
std::optional<std::string> feature_of(std::string table) {
  constexpr std::string_view kWeight = "/weight";
  if (table.ends_with(kWeight) && table.starts_with("table/"))
    table.resize(table.size() - kWeight.size());
  for (const std::string_view part : {"deep/", "table/", "query/", "candidate/"})
    if (table.starts_with(part) && table.size() > part.size()) return table.substr(part.size());
  return std::nullopt;
}

// "wide", or one of several classes'.
bool is_wide(const Job& job, const std::string& variable) {
  constexpr std::string_view kPrefix = "wide/";
  if (!job.model.kind.starts_with("wide")) return false;
  if (variable == "wide") return true;
  return variable.starts_with(kPrefix) && variable.size() > kPrefix.size() &&
         variable.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

// The features of the checkpoint's job, and those of this one.
class WarmFeatures {
 public:
  WarmFeatures(const Job& job, const FittedFeatures& now, Json saved)
      : job_(job), now_(now), saved_(std::move(saved)) {}

  // The row of `name` that each row of the checkpoint's `saved` is now. Empty: the same one.
  //   Errors  FailedPrecondition: one of both is no vocabulary.
  std::optional<RowNumbers> of_table(const std::string& name, const std::string& saved) const {
    const FeatureColumn* const own = vocabulary(name);
    const std::optional<std::vector<std::string>> values = saved_values(saved);
    if (own == nullptr && !values.has_value()) return std::nullopt;
    if (own == nullptr || !values.has_value())
      throw FailedPreconditionError(str("\"", own == nullptr ? saved : name, "\" is a vocabulary ",
                                        own == nullptr ? "of the checkpoint" : "of this job",
                                        ", and the other feature is none"));
    if (own->values == *values) return std::nullopt;
    return rows_by_value({.old_vocab = *values, .new_vocab = own->values, .oov = own->oov});
  }
  // A column of the crossed feature of this name whose ids mean something else now, so that its
  // combinations do. Empty: there is none.
  std::string changed_column(const std::string& cross_name) const {
    for (const JobFeatures::Cross& cross : job_.features.crosses)
      if (cross.name() == cross_name)
        for (const std::string& column : cross.columns)
          if (changed(column)) return column;
    return "";
  }
  std::optional<RowNumbers> of_wide() const {
    if (!saved_.contains("ids"))
      throw FailedPreconditionError(
          "the checkpoint does not say which rows its features have in that table");
    const WideLayout saved = saved_layout(), now = own_layout();
    RowNumbers numbers = wide_rows(
        saved, now, [&](const std::string& column) { return rows_of_column(saved, now, column); });
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] != static_cast<std::int64_t>(i)) return numbers;
    return std::nullopt;
  }

 private:
  // Ids of the feature mean other values than in the checkpoint, or may do so.
  bool changed(const std::string& name) const {
    const FeatureColumn* const own = vocabulary(name);
    const auto values = saved_values(name);
    if (own != nullptr || values.has_value())
      return own == nullptr || !values.has_value() || own->values != *values;
    const auto id = std::find_if(now_.ids.begin(), now_.ids.end(),
                                 [&name](const IdFeature& each) { return each.name == name; });
    for (const Json& column : saved_.value("columns", Json::array()))
      if (column.value("name", "") == name)
        return id == now_.ids.end() || column.value("rows", std::int64_t{0}) != id->rows;
    return true;
  }
  const FeatureColumn* vocabulary(const std::string& name) const {
    for (const FeatureColumn& column : now_.columns)
      if (column.kind == FeatureColumn::Kind::kVocabulary && column.name == name) return &column;
    return nullptr;
  }
  std::optional<std::vector<std::string>> saved_values(const std::string& name) const {
    const auto all = saved_.find("vocabularies");
    if (all == saved_.end() || !all->contains(name)) return std::nullopt;
    std::vector<std::string> values;
    for (const Json& value : (*all)[name])
      values.push_back(storage::from_base64(value.get<std::string>()));
    return values;
  }
  WideLayout saved_layout() const {
    WideLayout layout;
    for (const Json& id : saved_.value("ids", Json::array()))
      layout.columns.push_back({id.value("name", ""), id.value("rows", std::int64_t{0})});
    for (const Json& cross : saved_.value("crosses", Json::array()))
      layout.crosses.push_back({cross.value("columns", std::vector<std::string>()),
                                cross.value("buckets", std::int64_t{0})});
    return layout;
  }
  WideLayout own_layout() const {
    WideLayout layout;
    for (const IdFeature& id : now_.ids) layout.columns.push_back({id.name, id.rows});
    for (const JobFeatures::Cross& cross : job_.features.crosses)
      layout.crosses.push_back({cross.columns, cross.buckets});
    return layout;
  }
  std::optional<RowNumbers> rows_of_column(const WideLayout& saved, const WideLayout& now,
                                           const std::string& column) const {
    const auto rows = [&column](const WideLayout& layout) {
      const auto found = std::find_if(layout.columns.begin(), layout.columns.end(),
                                      [&](const auto& each) { return each.name == column; });
      return found == layout.columns.end() ? std::int64_t{-1} : found->rows;
    };
    if ((vocabulary(column) == nullptr) != !saved_values(column).has_value()) return std::nullopt;
    if (auto numbers = of_table(column, column)) return numbers;
    if (rows(saved) != rows(now)) return std::nullopt;
    RowNumbers same(static_cast<std::size_t>(rows(now)));
    for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<std::int64_t>(i);
    return same;
  }

  const Job& job_;
  const FittedFeatures& now_;
  const Json saved_;
};

std::optional<RowNumbers> numbers_of(const Job& job, const WarmFeatures& features,
                                     const std::string& target, const std::string& source) {
  if (is_wide(job, target)) return features.of_wide();
  const auto name = feature_of(target), saved = feature_of(source);
  if (!name.has_value() || !saved.has_value()) return std::nullopt;
  if (const std::string column = features.changed_column(*name); !column.empty())
    throw FailedPreconditionError(
        str("it combines values of \"", column, "\", whose vocabulary is another one now"));
  return features.of_table(*name, *saved);
}

ResumeOptions warm_resume() {
  return {.partial = true, .new_data = true, .own_vocabularies = true};
}

}  // namespace

FittedFeatures features_for_warm_start(const Job& job, const FittedFeatures& fitted,
                                       const std::string& checkpoint, RunOutput& output) {
  const Json metadata = saved_metadata(checkpoint);
  const SavedJob saved(metadata, checkpoint, warm_resume());
  saved.verify_features(job, fitted);
  const Json now = metadata_of(job, fitted, 0, 0);
  const std::string was = metadata.is_object() && metadata.contains("features")
                              ? metadata["features"].value("label", "")
                              : "";
  if (const std::string label = now["features"].value("label", ""); !was.empty() && was != label)
    output.warn(str("warning: warm_start: the label is ", was, " in the checkpoint and ", label,
                    " now: leave out by warm_start.exclude what is to learn it anew"));
  return saved.features(job, fitted);
}

RestoreOptions warm_start_options(const Job& job, const FittedFeatures& features,
                                  const std::string& checkpoint) {
  const storage::Manifest manifest = storage::read_manifest(storage::any_disk(), checkpoint);
  const Json metadata = parse_json(manifest.metadata, "the metadata of " + checkpoint);
  const JobWarmStart& start = job.warm_start;
  RestoreOptions options{.new_data = true,
                         .global_step = false,
                         .include = start.include,
                         .exclude = start.exclude,
                         .rename = start.rename,
                         .slots = start.slots};
  const SavedVariables saved = saved_variables(manifest);
  const bool counts = std::any_of(saved.begin(), saved.end(), [](const auto& variable) {
    return matches_pattern(kCounts, variable.first);
  });
  // An optimizer that begins anew counts its steps anew.
  if (!start.slots && counts) options.exclude.push_back(kCounts);
  const RestorePlan plan(saved, checkpoint, options);
  const WarmFeatures both(
      job, features,
      metadata.is_object() ? metadata.value("features", Json::object()) : Json::object());
  std::string wrong;
  for (const auto& [target, source] : plan.sources()) try {
      if (auto numbers = numbers_of(job, both, target, source))
        options.rows[target] = std::make_shared<const RowNumbers>(*std::move(numbers));
    } catch (const FailedPreconditionError& error) {
      wrong += str("\n  \"", target, "\": ", error.what());
    }
  if (!wrong.empty())
    throw FailedPreconditionError(str("warm_start: rows of the checkpoint ", checkpoint,
                                      " would stand for other values:", wrong,
                                      "\nLeave these tables out by warm_start.exclude"));
  return options;
}

}  // namespace cairn::tools
