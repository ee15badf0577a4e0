#include "tools/train_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <future>
#include <mutex>
#include <set>

#include "coordinator/task_roles.h"
#include "core/base/disk.h"
#include "core/base/log.h"
#include "rpc/token.h"
#include "tools/checkpoint_claim.h"
#include "tools/checkpoint_path.h"
#include "tools/given_cluster.h"
#include "tools/interrupt.h"
#include "tools/job_limits.h"
#include "tools/job_warnings.h"
#include "tools/local_cluster.h"
#include "tools/preflight.h"
#include "tools/progress_line.h"
#include "tools/report.h"
#include "tools/resume.h"
#include "tools/train_request.h"
#include "tools/trainer.h"
#include "tools/user_files.h"

namespace cairn::tools {
namespace {

constexpr Duration kLockPatience = std::chrono::seconds(2);  // for a run that was just killed,
// or that ends because its cluster was taken from it
constexpr Duration kTakeOverPatience = std::chrono::seconds(60);
// for tasks at the start, before they are named
constexpr Duration kSilentWait = std::chrono::seconds(2);

ParameterServerOptions strategy_options(const Job& job) {
  ParameterServerOptions options;
  options.partitioner = MinSizePartitioner(
      {.min_shard_bytes = job.cluster.partition_min_bytes,
       .max_shards = static_cast<std::int64_t>(job.cluster.ps) * job.cluster.shards});
  options.seed = job.model.seed;
  options.transport = rpc::parse_transport(job.cluster.transport);
  options.engine.pipeline_depth = job.cluster.pipeline_depth;
  options.engine.send_window = job.cluster.send_window;
  options.engine.bfloat16_wire = job.cluster.wire == "bfloat16";
  if (job.cluster.arithmetic == "bfloat16") options.engine.products = Arithmetic::kBfloat16;
  options.engine.recovery = job.cluster.recovery;
  options.engine.ps_wait = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(job.cluster.ps_wait_seconds));
  return options;
}

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
    return std::filesystem::absolute(found).lexically_normal().string();
  } catch (const NotFoundError& error) {
    throw NotFoundError(str("--resume: ", error.what()));
  }
}

Overwrite overwrite_of(const TrainRequest& request) {
  return request.overwrite ? Overwrite::kYes : Overwrite::kNo;
}

struct Prepared {
  Job job;
  FittedFeatures features;
};

Prepared prepare(const TrainRequest& request) {
  Prepared prepared{read_job(request.job_file), {}};
  apply(request, prepared.job);
  TimePoint before = system_clock().now();
  prepared.features = fit_features(prepared.job);
  try_test_data(prepared.job, prepared.features);
  const std::int64_t skipped = prepared.features.lines.skipped;
  const std::string bad = skipped > 0 ? str(", ", skipped, " bad rows left out") : "";
  std::printf("%s: %lld training examples, %zu id features%s%s (read in %.2f s)\n",
              prepared.job.name.c_str(), static_cast<long long>(prepared.features.examples),
              prepared.features.ids.size(), prepared.features.numeric ? " and numeric ones" : "",
              bad.c_str(), std::chrono::duration<double>(system_clock().now() - before).count());
  std::fflush(stdout);
  for (const std::string& warning : optimizer_warnings(prepared.job, prepared.features))
    std::fprintf(stderr, "%s\n", warning.c_str());
  return prepared;
}

// What the end needs is tried now, and the checkpoint to go on from is found.
TrainerOptions trainer_options(const TrainRequest& request, const Job& job,
                               const std::string& folder, ProgressLine& line) {
  try_folder(system_disk(), folder, "checkpoints", "name another folder with --checkpoints");
  if (!request.report.empty())
    try_file(system_disk(), request.report, "report", "name another file with --report");
  TrainerOptions options;
  options.checkpoint_folder = folder;
  options.resume = find_resume(request, job, folder);
  options.partial = request.partial;
  options.new_data = request.new_data;
  options.interrupted = &Interrupts::signal();
  options.line = &line;
  return options;
}

// Those of the checkpoint where new data goes on with its model.
FittedFeatures features_of(const Prepared& prepared, const TrainRequest& request,
                           const std::string& resume) {
  if (resume.empty()) return prepared.features;
  const Json saved = saved_metadata(resume);
  if (!request.partial) verify_job(saved, prepared.job, resume);
  return request.new_data ? features_as_saved(saved, prepared.job, resume) : prepared.features;
}

// Before anything that may still fail: whatever comes, what was trained is known.
void tell_outcome(const Prepared& prepared, const TrainingOutcome& outcome, ProgressLine& line) {
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
  std::fflush(stdout);
  if (!outcome.failure.empty())
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, outcome.failure.c_str());
}

// Writes the report. The exit status.
int finish(const Prepared& prepared, const TrainRequest& request, const TrainingOutcome& outcome,
           const std::map<std::string, int>& restarts) {
  if (!request.report.empty())
    write_report(request.report,
                 report_json(prepared.job, outcome, restarts, prepared.features.lines));
  if (outcome.interrupted != 0 && !outcome.stopped) return 128 + outcome.interrupted;
  return outcome.failure.empty() ? 0 : 1;
}

// Says which tasks are missing at the start, and lets the wait be interrupted.
std::function<void(const std::vector<std::string>&)> watch_the_start(ProgressLine& line,
                                                                     std::function<void()> look) {
  auto told = std::make_shared<std::set<std::string>>();
  return [&line, look = std::move(look), told,
          began = system_clock().now()](const std::vector<std::string>& missing) {
    if (Interrupts::signal() != 0)
      throw CancelledError("interrupted while it waited for tasks to appear: nothing was trained");
    if (look) look();
    if (system_clock().now() - began < kSilentWait) return;
    std::set<std::string> names;
    for (const std::string& task : missing) names.insert(task.substr(0, task.find(": ")));
    if (names == *told) return;
    *told = names;
    for (const std::string& task : missing) line.say("waiting for " + task);
  };
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

// On a terminal the log's lines stand above the live one.
class LogAbove {
 public:
  explicit LogAbove(ProgressLine& line) : on_(::isatty(STDOUT_FILENO) == 1) {
    if (on_) log_to([&line](LogLevel, const std::string& text) { line.say(text); });
  }
  ~LogAbove() {
    if (on_) log_to(LogSink{});
  }
  LogAbove(const LogAbove&) = delete;
  LogAbove& operator=(const LogAbove&) = delete;

 private:
  bool on_;
};

std::string checkpoint_folder(const TrainRequest& request, const Job& job,
                              const std::string& run_dir) {
  std::string folder = !request.checkpoints.empty()     ? request.checkpoints
                       : !job.checkpoint.folder.empty() ? job.checkpoint.folder
                                                        : run_dir + "/checkpoints";
  // every process must find it under this name
  return std::filesystem::absolute(folder).lexically_normal().string();
}

// What is told of whatever makes no progress.
void set_waits(const TrainRequest& request, EngineOptions& options) {
  options.waits.signal = SIGUSR1;
  if (request.stuck_after_seconds)
    options.waits.stuck_after = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::min(*request.stuck_after_seconds, 1e9)));
}

// Before anything is done: a run that may not save is not begun.
std::shared_ptr<const storage::FolderLock> claim(const TrainRequest& request,
                                                 const TrainerOptions& trainer, Duration patience) {
  return claim_checkpoint_folder(system_disk(), trainer.checkpoint_folder, trainer.resume,
                                 overwrite_of(request), patience);
}

int run_on_local_cluster(const TrainRequest& request) {
  std::signal(SIGUSR1, SIG_IGN);  // until the coordinator is there to answer
  if (!request.report.empty()) verify_report_path(request.report, overwrite_of(request));
  Prepared prepared = prepare(request);
  const Interrupts interrupts;  // until here a signal ends us at once: there was nothing to lose
  ProgressLine line;
  const JobCluster& wanted = prepared.job.cluster;
  LocalClusterOptions options;
  options.ps = wanted.ps;
  options.workers = wanted.workers;
  options.shards = wanted.shards;
  options.lanes = wanted.lanes;
  options.transport = wanted.transport;
  options.dir = request.dir;
  for (const auto& kill : request.kills) options.supervisor.kills.push_back(parse_kill(kill));
  options.warn = [&line](const std::string& text) { line.say("warning: " + text); };
  std::promise<std::string> given_up;
  auto role_given_up = given_up.get_future();
  std::once_flag first;
  auto tell = [&](const RoleEvent& event) {
    if (event.kind != RoleEvent::Kind::kStarted || event.restarts > 0) log_warning(event.message);
    if (event.kind == RoleEvent::Kind::kGivenUp)
      std::call_once(first, [&] { given_up.set_value(event.message); });
  };
  LocalCluster cluster(options, tell);
  auto raise_if_given_up = [&] {
    if (role_given_up.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      throw UnavailableError(role_given_up.get());
  };
  // beside the roles' logs: the terminal belongs to the progress
  log_to(cluster.dir() + "/logs/chief-0.log", "cairn");
  std::printf("cluster: %d ps and %d workers, logs in %s/logs\n", wanted.ps, wanted.workers,
              cluster.dir().c_str());
  std::fflush(stdout);
  TrainerOptions trainer = trainer_options(
      request, prepared.job, checkpoint_folder(request, prepared.job, cluster.dir()), line);
  const FittedFeatures features = features_of(prepared, request, trainer.resume);
  const auto lock = claim(request, trainer, kLockPatience);
  trainer.on_progress = [&](double done) {
    cluster.supervisor().progress(done);
    raise_if_given_up();
  };
  cluster.start();
  ParameterServerOptions strategy = strategy_options(prepared.job);
  set_waits(request, strategy.engine);
  strategy.engine.cluster_id = cluster.cluster_id();
  strategy.engine.token = cluster.token();
  strategy.engine.folder_lock = lock;
  strategy.engine.start.on_wait = watch_the_start(line, raise_if_given_up);
  TrainingOutcome outcome;
  {
    ParameterServerStrategy parameter_servers(
        TFConfigClusterResolver(cluster.tf_config("chief", 0)), strategy);
    outcome = Trainer(prepared.job, features, parameter_servers, std::move(trainer)).run();
    tell_outcome(prepared, outcome, line);
  }
  std::map<std::string, int> restarts{{"ps", cluster.supervisor().restarts("ps")},
                                      {"worker", cluster.supervisor().restarts("worker")}};
  cluster.stop();
  return finish(prepared, request, outcome, restarts);
}

int run_on_given_cluster(const TrainRequest& request) {
  std::signal(SIGUSR1, SIG_IGN);
  if (!request.report.empty()) verify_report_path(request.report, overwrite_of(request));
  Prepared prepared = prepare(request);
  const Interrupts interrupts;
  ProgressLine line;
  const LogAbove log(line);
  TFConfigClusterResolver resolver;
  verify_parameter_server_cluster(resolver);
  prepared.job.cluster.ps = static_cast<int>(resolver.cluster_spec().task_count("ps"));
  prepared.job.cluster.workers = static_cast<int>(resolver.cluster_spec().task_count("worker"));
  const GivenClusterRun run(request.dir,
                            {resolver.cluster_spec(), request.cluster_id, request.token_file});
  line.say("the run's folder is " + run.dir());
  TrainerOptions trainer = trainer_options(
      request, prepared.job, checkpoint_folder(request, prepared.job, run.dir()), line);
  const FittedFeatures features = features_of(prepared, request, trainer.resume);
  ParameterServerOptions options = strategy_options(prepared.job);
  if (!request.cluster_id.empty()) options.engine.cluster_id = request.cluster_id;
  if (!request.token_file.empty()) options.engine.token = rpc::read_token(request.token_file);
  set_waits(request, options.engine);
  options.engine.take_over = request.take_over;
  // The coordinator that is to be ended may have the folder until it is.
  if (!request.take_over) options.engine.folder_lock = claim(request, trainer, kLockPatience);
  options.engine.start.on_wait = watch_the_start(line, {});
  ParameterServerStrategy strategy(resolver, options);
  if (request.take_over)
    ClusterCoordinator(strategy).hold_folder(claim(request, trainer, kTakeOverPatience));
  const TrainingOutcome outcome =
      Trainer(prepared.job, features, strategy, std::move(trainer)).run();
  tell_outcome(prepared, outcome, line);
  return finish(prepared, request, outcome, {});
}

int train_on_local_cluster(const TrainRequest& request) {
  return in_order([&] { return run_on_local_cluster(request); });
}

}  // namespace

int train_on_given_cluster(const TrainRequest& request) {
  return in_order([&] { return run_on_given_cluster(request); });
}

void add_train_command(CLI::App& app, int& status) {
  auto request = std::make_shared<TrainRequest>();
  CLI::App* train =
      app.add_subcommand("train", "Run a job file on a cluster of processes of this machine");
  add_job_flags(*train, *request);
  train->add_option("--ps", request->overrides.ps, "Parameter servers");
  train->add_option("--workers", request->overrides.workers, "Workers");
  train->add_option("--shards", request->overrides.shards, "Threads of a ps");
  train->add_option("--lanes", request->overrides.lanes, "Closures that a worker computes at once");
  train->add_option("--kill", request->kills, "SIGKILL a role on the way: worker:1@40%, ps:0@12s")
      ->allow_extra_args(false);
  train->callback([request, &status] { status = train_on_local_cluster(*request); });
}

}  // namespace cairn::tools
