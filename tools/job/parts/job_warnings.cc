#include "tools/job/parts/job_warnings.h"

#include <algorithm>

#include "tools/job/parts/embedded_ids.h"

namespace cairn::tools {
namespace {

// Below this, going through a whole table costs little beside the step.
constexpr std::int64_t kRowsUntold = 100'000;

// A core needs about a millisecond for so many multiplications forwards and backwards; a round of
// messages or of threads that wait for one another costs as much.
constexpr double kWorthSynchronising = 2e6;

int replicas_in_step(const Job& job) {
  const JobStrategy& strategy = job.strategy;
  if (strategy.kind == "one_device") return 1;
  if (strategy.kind == "mirrored" || strategy.kind == "central_storage")
    return strategy.replicas_of_process();
  if (strategy.kind == "multi_worker_mirrored")
    return strategy.replicas_of_process() * job.cluster.workers;
  const bool in_step = strategy.kind == "hybrid" || strategy.consistency == "synchronous";
  return in_step ? job.cluster.workers * std::max(1, job.cluster.lanes) : 1;
}

// Multiplications of one example on its way forwards.
double work_of_example(const Job& job, const FittedFeatures& features) {
  const JobModel& model = job.model;
  std::size_t numbers = features.plain.size();
  for (const FeatureColumn& column : features.columns) numbers += column.numerics.size();
  const auto ids = static_cast<double>(embedded_ids(job, features).size());
  double inputs = static_cast<double>(numbers);
  double work = model.kind == "deep" ? 0 : (inputs + ids) * static_cast<double>(model.outputs());
  if (model.kind == "wide") return work;
  inputs += ids * static_cast<double>(model.embedding_dim);
  for (const std::int64_t units : model.hidden) {
    work += inputs * static_cast<double>(units);
    inputs = static_cast<double>(units);
  }
  return work + inputs * static_cast<double>(model.outputs());
}

// By the table of docs/job-file.md.
bool updates_every_row(const JobOptimizer& optimizer) { return optimizer.kind == "adam"; }

}  // namespace

std::vector<std::string> optimizer_warnings(const Job& job, const FittedFeatures& features) {
  const std::vector<IdFeature> ids = embedded_ids(job, features);
  const auto largest = std::max_element(
      ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.rows < b.rows; });
  if (largest == ids.end() || largest->rows <= kRowsUntold) return {};
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

std::vector<std::string> in_step_warnings(const Job& job, const FittedFeatures& features) {
  const std::string& kind = job.model.kind;
  const int replicas = replicas_in_step(job);
  if (replicas < 2 || (kind != "wide" && kind != "deep" && kind != "wide_deep")) return {};
  const double work =
      work_of_example(job, features) * static_cast<double>(job.data.batch) / replicas;
  if (work >= kWorthSynchronising) return {};
  return {str("warning: ", replicas, " replicas take every step together (strategy.kind = \"",
              job.strategy.kind, "\"), and a step is so little work for each that synchronising ",
              "them costs more: strategy.kind = \"one_device\" is faster, or a larger data.batch")};
}

std::string empty_files_text(const LinesRead& lines, const std::string& key) {
  constexpr std::size_t kShown = 5;
  const std::size_t files = lines.empty_files.size();
  if (files == 0) return "";
  std::string text = str(files, files == 1 ? " file of " : " files of ", key,
                         files == 1 ? " has no rows and was" : " have no rows and were",
                         " passed over (data.empty_files): ");
  for (std::size_t i = 0; i < std::min(kShown, files); ++i)
    text += str(i == 0 ? "" : ", ", lines.empty_files[i]);
  return files > kShown ? text + ", ..." : text;
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

std::string passed_over_text(const LinesRead& lines, const std::string& key, Speaker speaker) {
  const std::string files = empty_files_text(lines, key);
  const std::string rows = skipped_rows_text(lines, key, speaker);
  return str(files, files.empty() || rows.empty() ? "" : "\n", rows);
}

std::string left_out_text(const LinesRead& lines) {
  std::string text;
  if (lines.filtered > 0) text += str(", ", lines.filtered, " rows left out by conditions");
  if (lines.unlabelled > 0) text += str(", ", lines.unlabelled, " rows without a label left out");
  return text;
}

}  // namespace cairn::tools
