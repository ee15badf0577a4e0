#include "tools/job/train/train_setup.h"

#include <algorithm>
#include <filesystem>

#include "core/base/log.h"
#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "strategy/servers/ps_replicas.h"
#include "tools/job/parts/job_lists.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/parts/label_texts.h"
#include "tools/job/parts/label_warnings.h"
#include "tools/job/parts/learning_rates.h"
#include "tools/job/parts/watched_metrics.h"
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
#include "tools/job/train/train_in_process.h"
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

namespace {

Job read_job_of(const TrainRequest& request) {
  if (!request.job_values.empty()) return job_of_values(request.job_values, request.beside);
  if (request.beside.empty()) return read_job(request.job_file);
  const auto name = std::filesystem::path(request.job_file).filename();
  return parse_job(system_disk().read(request.job_file),
                   (std::filesystem::path(request.beside) / name).string());
}

}  // namespace

Job job_of(const TrainRequest& request) {
  Job job = read_job_of(request);
  apply(request, job);
  return job;
}

Job job_to_train(const TrainRequest& request) {
  Job job = job_of(request);
  if (request.overrides.data_workers.value_or(0) > 0 && !job.strategy.on_servers())
    throw InvalidArgumentError(
        str("--data-workers starts a data service beside ps and workers, and strategy.kind is \"",
            job.strategy.kind, "\": name a service that runs in data.service.address"));
  if (job.strategy.on_servers())
    verify_ps_replicas(place_of_replicas(request), job.cluster.ps_loss.replicas, job.cluster.ps);
  if (!job.strategy.on_workers()) replica_devices(job);  // before data is read for them
  return job;
}

PreparedJob prepare(const TrainRequest& request, RunOutput& output) {
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
  const double seconds = std::chrono::duration<double>(system_clock().now() - before).count();
  output.say(str(prepared.job.name, ": ", prepared.features.examples, " training examples, ",
                 prepared.features.ids.size(), " id features",
                 prepared.features.numeric ? " and numeric ones" : "", bad, " (read in ",
                 fixed(seconds, 2), " s)",
                 settled.empty() ? "" : str("; ", settled, " by default")));
  for (const std::string& text : empty) output.say(text);
  std::vector<std::string> warnings = optimizer_warnings(prepared.job, prepared.features);
  for (std::string& warning : in_step_warnings(prepared.job, prepared.features))
    warnings.push_back(std::move(warning));
  for (std::string& warning : label_warnings(prepared.job)) warnings.push_back(std::move(warning));
  for (std::string& warning : service_warnings(prepared.job, data_workers))
    warnings.push_back(std::move(warning));
  for (std::string& warning : no_positive_warnings(prepared.job))
    warnings.push_back(std::move(warning));
  for (const std::string& warning : warnings) output.warn(warning);
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

std::string graph_folder(const std::string& run_dir) {
  return std::filesystem::absolute(run_dir + "/graph").lexically_normal().string();
}

std::string own_checkpoints(const std::string& run_dir) {
  return std::filesystem::absolute(run_dir + "/checkpoints").lexically_normal().string();
}

// Tries the outputs of the run's end now, and finds the checkpoint to go on from.
TrainerOptions trainer_options(const TrainRequest& request, const Job& job,
                               const std::string& folder, RunOutput& output, Trial trial) {
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
  options.output = &output;
  options.reporter =
      std::make_shared<RunReporter>([&output](const std::string& text) { output.say(text); });
  return options;
}

std::shared_ptr<RunReporter> reporter_in(const std::string& run_dir, const TrainRequest& request,
                                         const Job& job, const TrainerOptions& options) {
  RunOutput& output = *options.output;
  auto reporter =
      std::make_shared<RunReporter>([&output](const std::string& text) { output.say(text); });
  try {
    reporter->add("the run's history", history_listener(run_dir));
  } catch (const Error& error) {
    output.say(str("warning: the run's history is not kept: ", error.what()));
  }
  const bool anew = options.resume.empty() && !(options.goes_on && options.goes_on->begun);
  const Earlier earlier = anew ? Earlier::kReplace : Earlier::kGoOn;
  if (const JobOutput& csv = job.callbacks.csv_logger; !csv.path.empty())
    reporter->add(csv.path, csv_listener(csv, learning_rate_names(job), eval_metrics(job), earlier,
                                         overwrite_of(request)));
  if (const JobOutput& events = job.callbacks.tensorboard; !events.path.empty())
    reporter->add(events.path, tensorboard_listener(events));
  return reporter;
}

namespace {

// All that is wrong with the plan's names is found before a cluster is started for it.
FittedFeatures warm_features(const PreparedJob& prepared, const TrainerOptions& options) {
  const std::string& checkpoint = options.warm_start;
  FittedFeatures features =
      features_for_warm_start(prepared.job, prepared.features, checkpoint, *options.output);
  warm_start_options(prepared.job, features, checkpoint);
  return features;
}

}  // namespace

// Before anything is restored.
FittedFeatures features_of(const PreparedJob& prepared, const TrainerOptions& options) {
  if (options.goes_on && options.goes_on->begun) {
    const SavedJob saved(options.goes_on->metadata, options.goes_on->where,
                         {.new_data = options.new_data, .journal = true});
    saved.verify_job(prepared.job);
    saved.verify_features(prepared.job, prepared.features);
    return saved.features(prepared.job, prepared.features);
  }
  if (options.resume.empty() && options.warm_start.empty()) return prepared.features;
  if (options.resume.empty()) return warm_features(prepared, options);
  const SavedJob saved(options.resume, {options.partial, options.new_data});
  saved.verify_job(prepared.job);
  if (!saved.knows_features())
    options.output->warn(str("warning: the checkpoint ", options.resume,
                             " does not say what its model was trained on, so that other features "
                             "or data than then would go unnoticed"));
  saved.verify_features(prepared.job, prepared.features);
  return saved.features(prepared.job, prepared.features);
}

// Before anything is done: a run that may not save is not begun.
std::shared_ptr<const storage::FolderLock> claim(const TrainRequest& request,
                                                 const TrainerOptions& trainer, Duration patience) {
  // A run that its journal tells of has saved there before.
  const std::string resume = trainer.goes_on && trainer.goes_on->begun
                                 ? trainer.checkpoint_folder + "/of-this-run"
                                 : trainer.resume;
  return claim_checkpoint_folder(storage::any_disk(), trainer.checkpoint_folder, resume,
                                 overwrite_of(request), patience, *trainer.output);
}

// ---- the end ----

namespace {

// The replica that waits least for the others is the one that they wait for.
void say_collectives(const TrainingOutcome& outcome, RunOutput& output) {
  const double replicas = static_cast<double>(outcome.collectives.size());
  const double percent = outcome.stats.uptime_seconds * replicas / 100;
  if (percent <= 0) return;
  CollectiveCounts all;
  for (const CollectiveCounts& each : outcome.collectives) all += each;
  const auto slowest = std::min_element(
      outcome.collectives.begin(), outcome.collectives.end(),
      [](const auto& a, const auto& b) { return a.waited_seconds < b.waited_seconds; });
  output.say(str(outcome.replicas, " replicas: each made ",
                 fixed(static_cast<double>(all.calls) / replicas, 0), " collective calls of ",
                 fixed(static_cast<double>(all.bytes) / replicas / 1e6, 1),
                 " MB together, stood in them for ", fixed(all.held_seconds / percent, 0),
                 " % of the time, and waited there for ", fixed(all.waited_seconds / percent, 0),
                 " % of it for the slowest, most often replica ",
                 slowest - outcome.collectives.begin()));
}

}  // namespace

void say_outcome(const PreparedJob& prepared, const TrainingOutcome& outcome, RunOutput& output) {
  output.end();
  for (const auto& [lines, key] : {std::pair(&prepared.features.lines, "data.train"),
                                   std::pair(&outcome.test_lines, "data.test")})
    if (const std::string text = skipped_rows_text(*lines, key); !text.empty()) output.say(text);
  const EngineStats& stats = outcome.stats;
  if (stats.lost_updates > 0 || stats.retried > 0)
    output.say(str("recovered: ", stats.retried, " closures ran again, ", stats.lost_updates,
                   " updates were lost with a ps"));
  say_collectives(outcome, output);
  if (stats.checkpoints_failed > 0)
    output.say(str("automatic checkpoints that failed: ", stats.checkpoints_failed,
                   ", the last one so: ", stats.checkpoint_error));
  std::string saved = "checkpoint " + outcome.checkpoint;
  if (outcome.checkpoint.empty())
    saved = stats.last_checkpoint.empty() ? "there is no checkpoint"
                                          : str("the newest checkpoint is ", stats.last_checkpoint);
  const char* how = outcome.stopped ? "stopped" : outcome.interrupted != 0 ? "interrupted" : "done";
  output.say(str(how, " after ", outcome.steps, " steps in ", fixed(outcome.seconds, 2), " s (",
                 fixed(outcome.examples_per_s, 0), " examples/s); ", saved));
  if (!outcome.model.empty())
    output.say(str("predict with: cairn predict ", outcome.model, " --data FILE --out FILE"));
  if (!outcome.failure.empty()) output.fail(outcome.failure);
}

TrainedJob finish(const PreparedJob& prepared, const TrainRequest& request,
                  const TrainingOutcome& outcome, const std::map<std::string, int>& restarts,
                  TrainedJob trained) {
  trained.report = report_json(prepared.job, outcome, restarts, prepared.features.lines);
  trained.model = outcome.model;
  trained.failure = outcome.failure;
  trained.interrupted = outcome.interrupted;
  trained.stopped = outcome.stopped;
  if (!request.report.empty()) write_report(request.report, trained.report);
  return trained;
}

}  // namespace cairn::tools
