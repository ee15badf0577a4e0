#include "tools/job_warnings.h"

#include <algorithm>

namespace cairn::tools {
namespace {

// Below this, going through a whole table costs little beside the step.
constexpr std::int64_t kRowsUntold = 100'000;

// By the table of docs/job-file.md.
bool updates_every_row(const JobOptimizer& optimizer) { return optimizer.kind == "adam"; }

}  // namespace

std::vector<std::string> optimizer_warnings(const Job& job, const FittedFeatures& features) {
  const auto largest =
      std::max_element(features.ids.begin(), features.ids.end(),
                       [](const auto& a, const auto& b) { return a.rows < b.rows; });
  if (largest == features.ids.end() || largest->rows <= kRowsUntold) return {};
  std::vector<std::string> warnings;
  const auto warn = [&](const char* key) {
    warnings.push_back(str(
        "warning: ", key, ".kind = \"adam\" updates every row of every table at each step, and \"",
        largest->name, "\" has ", largest->rows,
        " rows: \"lazy_adam\" and \"adagrad\" update the rows of the batch only"));
  };
  if (job.model.kind != "wide" && updates_every_row(job.optimizer))
    warn("optimizer");
  else if (job.model.kind.starts_with("wide") && updates_every_row(job.wide_optimizer))
    warn("wide_optimizer");
  return warnings;
}

// An empty file is most often one that was cut short on its way, and training on what is left would
// go unnoticed.
void refuse_empty_files(const LinesRead& lines, const std::string& key) {
  if (lines.empty_files.empty()) return;
  std::string names;
  for (const auto& path : lines.empty_files) names += (names.empty() ? "" : ", ") + path;
  throw InvalidArgumentError(
      str(key, ": no rows are in ", names, "; fetch such a file again, or leave it out"));
}

// A few examples are enough to find the pattern; LinesRead has kept more for the report.
std::string skipped_rows_text(const LinesRead& lines, const std::string& key, Speaker speaker) {
  constexpr std::size_t kShown = 5;
  if (lines.skipped == 0) return "";
  std::string text =
      str(lines.skipped, lines.skipped == 1 ? " bad row of " : " bad rows of ", key,
          lines.skipped == 1 ? " was" : " were", " left out (",
          speaker == Speaker::kJob ? "data.skip_bad_rows"
                                   : "--skip-bad-rows, or the job's data.skip_bad_rows",
          ")");
  for (std::size_t i = 0; i < std::min(kShown, lines.first_skipped.size()); ++i)
    text += str(i == 0 ? ":\n  " : "\n  ", in_job_words(lines.first_skipped[i], speaker));
  if (lines.skipped > static_cast<std::int64_t>(kShown)) text += "\n  ...";
  return text;
}

std::string left_out_text(const LinesRead& lines) {
  std::string text;
  if (lines.filtered > 0) text += str(", ", lines.filtered, " rows left out by conditions");
  if (lines.unlabelled > 0) text += str(", ", lines.unlabelled, " rows without a label left out");
  return text;
}

}  // namespace cairn::tools
