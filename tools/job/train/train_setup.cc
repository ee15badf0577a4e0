#include "tools/job/train/train_setup.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "tools/job/parts/job_lists.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/parts/label_texts.h"
#include "tools/job/parts/label_warnings.h"
#include "tools/job/parts/learning_rates.h"
#include "tools/job/parts/watched_metrics.h"
#include "tools/job/run/interrupt.h"
#include "tools/job/run/report.h"
#include "tools/job/run/resume.h"
#include "tools/job/run/warm_start.h"
#include "tools/job/spec/job_defaults.h"
#include "tools/job/spec/job_metrics.h"
#include "tools/job/spec/job_service.h"
#include "tools/job/train/checkpoint_claim.h"
#include "tools/job/train/checkpoint_path.h"
#include "tools/job/train/preflight.h"
#include "tools/job/train/run_files.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {
namespace {

Overwrite overwrite_of(const TrainRequest& request) {
  return request.overwrite ? Overwrite::kYes : Overwrite::kNo;
}

}  // namespace

// `folder` is where this run saves. "latest" is the newest there, if the command line or the job
// names that folder.
std::string find_resume(const TrainRequest& request, const Job& job, const std::string& folder) {
  if (request.resume.empty()) return "";
  const bool named =
      !request.dir.empty() || !request.checkpoints.empty() || !job.checkpoint.folder.empty();
  try {
    const bool newest = request.resume == "latest" && !named;
    const std::string found =
        newest ? latest_checkpoint()
               : checkpoint_at(request.resume == "latest" ? folder : request.resume);
    return storage::absolute_place(found);
  } catch (const NotFoundError& error) {
    throw NotFoundError(str("--resume: ", error.what()));
  }
}

namespace {

std::string find_warm_start(const Job& job) {
  if (job.warm_start.from.empty()) return "";
  try {
    return storage::absolute_place(checkpoint_at(job.warm_start.from));
  } catch (const NotFoundError& error) {
    throw NotFoundError(str("warm_start.from: ", error.what()));
  }
}

}  // namespace

Job job_of(const TrainRequest& request) {
  Job job = read_job(request.job_file);
  apply(request, job);
  return job;
}

PreparedJob prepare(const TrainRequest& request) {
  if (!request.report.empty()) verify_report_path(request.report, overwrite_of(request));
  PreparedJob prepared{job_of(request), {}};
  const int data_workers = request.overrides.data_workers.value_or(0);
  find_service(prepared.job, data_workers);
  TimePoint before = system_clock().now();
  prepared.features = fit_features(prepared.job);
  verify_label_texts(prepared.job);
  verify_training_lists(prepared.job, prepared.features);
  std::vector<std::string> empty = try_judged_data(prepared.job, prepared.features);
  if (std::string text = empty_files_text(prepared.features.lines, "data.train"); !text.empty())
    empty.insert(empty.begin(), std::move(text));
  verify_watched_metrics(prepared.job, prepared.features);
  const std::string settled = settle_defaults(prepared.job, prepared.features.examples);
  const std::int64_t skipped = prepared.features.lines.skipped;
  const std::string bad = str(skipped > 0 ? str(", ", skipped, " bad rows left out") : "",
                              left_out_text(prepared.features.lines));
  std::printf("%s: %lld training examples, %zu id features%s%s (read in %.2f s)%s\n",
              prepared.job.name.c_str(), static_cast<long long>(prepared.features.examples),
              prepared.features.ids.size(), prepared.features.numeric ? " and numeric ones" : "",
              bad.c_str(), std::chrono::duration<double>(system_clock().now() - before).count(),
              settled.empty() ? "" : str("; ", settled, " by default").c_str());
  for (const std::string& text : empty) std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  std::vector<std::string> warnings = optimizer_warnings(prepared.job, prepared.features);
  for (std::string& warning : in_step_warnings(prepared.job, prepared.features))
    warnings.push_back(std::move(warning));
  for (std::string& warning : label_warnings(prepared.job)) warnings.push_back(std::move(warning));
  for (std::string& warning : service_warnings(prepared.job, data_workers))
    warnings.push_back(std::move(warning));
  for (std::string& warning : no_positive_warnings(prepared.job))
    warnings.push_back(std::move(warning));
  for (const std::string& warning : warnings) std::fprintf(stderr, "%s\n", warning.c_str());
  return prepared;
}

std::string checkpoint_folder(const TrainRequest& request, const Job& job,
                              const std::string& run_dir) {
  std::string folder = !request.checkpoints.empty()     ? request.checkpoints
                       : !job.checkpoint.folder.empty() ? job.checkpoint.folder
                                                        : run_dir + "/checkpoints";
  // every process must find it under this name
  return storage::absolute_place(folder);
}

std::string model_folder(const std::string& run_dir) {
  return std::filesystem::absolute(run_dir + "/model").lexically_normal().string();
}

std::string own_checkpoints(const std::string& run_dir) {
  return std::filesystem::absolute(run_dir + "/checkpoints").lexically_normal().string();
}

// Tries the outputs of the run's end now, and finds the checkpoint to go on from.
TrainerOptions trainer_options(const TrainRequest& request, const Job& job,
                               const std::string& folder, ProgressLine& line, Trial trial) {
  if (trial == Trial::kYes)
    try_folder(storage::any_disk(), folder, "checkpoints",
               "name another folder with --checkpoints");
  if (trial == Trial::kYes && !request.report.empty())
    try_file(system_disk(), request.report, "report", "name another file with --report");
  TrainerOptions options;
  options.checkpoint_folder = folder;
  options.resume = find_resume(request, job, folder);
  if (options.resume.empty()) options.warm_start = find_warm_start(job);
  options.partial = request.partial;
  options.single_writer = request.single_writer;
  options.new_data = request.new_data;
  if (!options.resume.empty() && !options.new_data)
    options.data_began = SavedJob(options.resume).data_began();
  options.line = &line;
  options.reporter =
      std::make_shared<RunReporter>([&line](const std::string& text) { line.say(text); });
  return options;
}

std::shared_ptr<RunReporter> reporter_in(const std::string& run_dir, const TrainRequest& request,
                                         const Job& job, const TrainerOptions& options) {
  ProgressLine& line = *options.line;
  auto reporter =
      std::make_shared<RunReporter>([&line](const std::string& text) { line.say(text); });
  try {
    reporter->add("the run's history", history_listener(run_dir));
  } catch (const Error& error) {
    line.say(str("warning: the run's history is not kept: ", error.what()));
  }
  const Earlier earlier = options.resume.empty() ? Earlier::kReplace : Earlier::kGoOn;
  if (const JobOutput& csv = job.callbacks.csv_logger; !csv.path.empty())
    reporter->add(csv.path, csv_listener(csv, learning_rate_names(job), eval_metrics(job), earlier,
                                         overwrite_of(request)));
  if (const JobOutput& events = job.callbacks.tensorboard; !events.path.empty())
    reporter->add(events.path, tensorboard_listener(events));
  return reporter;
}

namespace {

// All that is wrong with the plan's names is found before a cluster is started for it.
FittedFeatures warm_features(const PreparedJob& prepared, const std::string& checkpoint) {
  FittedFeatures features = features_for_warm_start(prepared.job, prepared.features, checkpoint);
  warm_start_options(prepared.job, features, checkpoint);
  return features;
}

}  // namespace

// Before anything is restored.
FittedFeatures features_of(const PreparedJob& prepared, const TrainerOptions& options) {
  if (options.resume.empty() && options.warm_start.empty()) return prepared.features;
  if (options.resume.empty()) return warm_features(prepared, options.warm_start);
  const SavedJob saved(options.resume, {options.partial, options.new_data});
  saved.verify_job(prepared.job);
  if (!saved.knows_features())
    std::fprintf(stderr,
                 "warning: the checkpoint %s does not say what its model was trained on, so that "
                 "other features or data than then would go unnoticed\n",
                 options.resume.c_str());
  saved.verify_features(prepared.job, prepared.features);
  return saved.features(prepared.job, prepared.features);
}

// Before anything is done: a run that may not save is not begun.
std::shared_ptr<const storage::FolderLock> claim(const TrainRequest& request,
                                                 const TrainerOptions& trainer, Duration patience) {
  return claim_checkpoint_folder(storage::any_disk(), trainer.checkpoint_folder, trainer.resume,
                                 overwrite_of(request), patience);
}

// ---- the end ----

namespace {

// The replica that waits least for the others is the one that they wait for.
void tell_collectives(const TrainingOutcome& outcome) {
  const double replicas = static_cast<double>(outcome.collectives.size());
  const double percent = outcome.stats.uptime_seconds * replicas / 100;
  if (percent <= 0) return;
  CollectiveCounts all;
  for (const CollectiveCounts& each : outcome.collectives) all += each;
  const auto slowest = std::min_element(
      outcome.collectives.begin(), outcome.collectives.end(),
      [](const auto& a, const auto& b) { return a.waited_seconds < b.waited_seconds; });
  std::printf(
      "%d replicas: each made %.0f collective calls of %.1f MB together, stood in them for %.0f %% "
      "of "
      "the time, and waited there for %.0f %% of it for the slowest, most often replica %td\n",
      outcome.replicas, static_cast<double>(all.calls) / replicas,
      static_cast<double>(all.bytes) / replicas / 1e6, all.held_seconds / percent,
      all.waited_seconds / percent, slowest - outcome.collectives.begin());
}

}  // namespace

// Before anything that may still fail: whatever comes, what was trained is known.
void report_outcome(const PreparedJob& prepared, const TrainingOutcome& outcome,
                    ProgressLine& line) {
  line.end();
  for (const auto& [lines, key] : {std::pair(&prepared.features.lines, "data.train"),
                                   std::pair(&outcome.test_lines, "data.test")})
    if (const std::string text = skipped_rows_text(*lines, key); !text.empty())
      std::printf("%s\n", text.c_str());
  const EngineStats& stats = outcome.stats;
  if (stats.lost_updates > 0 || stats.retried > 0)
    std::printf("recovered: %llu closures ran again, %llu updates were lost with a ps\n",
                static_cast<unsigned long long>(stats.retried),
                static_cast<unsigned long long>(stats.lost_updates));
  tell_collectives(outcome);
  if (stats.checkpoints_failed > 0)
    std::printf("automatic checkpoints that failed: %llu, the last one so: %s\n",
                static_cast<unsigned long long>(stats.checkpoints_failed),
                stats.checkpoint_error.c_str());
  std::string saved = "checkpoint " + outcome.checkpoint;
  if (outcome.checkpoint.empty())
    saved = stats.last_checkpoint.empty() ? "there is no checkpoint"
                                          : str("the newest checkpoint is ", stats.last_checkpoint);
  const char* how = outcome.stopped ? "stopped" : outcome.interrupted != 0 ? "interrupted" : "done";
  std::printf("%s after %lld steps in %.2f s (%.0f examples/s); %s\n", how,
              static_cast<long long>(outcome.steps), outcome.seconds, outcome.examples_per_s,
              saved.c_str());
  if (!outcome.model.empty())
    std::printf("predict with: cairn predict %s --data FILE --out FILE\n", outcome.model.c_str());
  std::fflush(stdout);
  if (!outcome.failure.empty())
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, outcome.failure.c_str());
}

// Writes the report. The exit status.
int finish(const PreparedJob& prepared, const TrainRequest& request, const TrainingOutcome& outcome,
           const std::map<std::string, int>& restarts) {
  if (!request.report.empty())
    write_report(request.report,
                 report_json(prepared.job, outcome, restarts, prepared.features.lines));
  if (outcome.interrupted != 0 && !outcome.stopped) return 128 + outcome.interrupted;
  return outcome.failure.empty() ? 0 : 1;
}

// Runs `work`, whose exit status it returns; of an interrupted start, that of the signal.
int in_order(const std::function<int()>& work) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output may go away; the run goes on
  try {
    return work();
  } catch (const CancelledError& error) {
    if (Interrupts::signal() == 0) throw;
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
    return 128 + Interrupts::signal();
  }
}

}  // namespace cairn::tools
