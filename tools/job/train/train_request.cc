#include "tools/job/train/train_request.h"

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "core/base/error.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

void apply(const TrainRequest& request, Job& job) {
  const JobOverrides& wanted = request.overrides;
  std::map<std::string, std::string> flags;  // by the key that each overrides
  auto set = [&](const auto& from, auto& to, const char* key, const char* flag) {
    if (!from) return;
    to = static_cast<std::remove_reference_t<decltype(to)>>(*from);
    flags[key] = flag;
  };
  if (wanted.steps && wanted.epochs)
    throw InvalidArgumentError("--steps and --epochs both say how long to train: give one");
  if (wanted.epochs) job.data.steps = 0;
  set(wanted.strategy.kind, job.strategy.kind, "strategy.kind", "--strategy");
  set(wanted.strategy.consistency, job.strategy.consistency, "strategy.consistency",
      "--consistency");
  set(wanted.strategy.max_staleness, job.strategy.max_staleness, "strategy.max_staleness",
      "--max-staleness");
  set(wanted.strategy.replicas, job.strategy.replicas, "strategy.replicas", "--replicas");
  set(wanted.ps, job.cluster.ps, "cluster.ps", "--ps");
  set(wanted.workers, job.cluster.workers, "cluster.workers", "--workers");
  set(wanted.shards, job.cluster.shards, "cluster.shards", "--shards");
  set(wanted.lanes, job.cluster.lanes, "cluster.lanes", "--lanes");
  set(wanted.ps_memory.limit, job.cluster.memory_limit, "cluster.memory_limit", "--memory-limit");
  set(wanted.ps_memory.row_log, job.cluster.row_log, "cluster.row_log", "--row-log");
  if (wanted.data_workers.value_or(0) > 0) {
    if (!job.data.service.address.empty())
      throw InvalidArgumentError(
          str("--data-workers starts a data service for the run, and data.service.address names "
              "another one, ",
              job.data.service.address, ": give one of them"));
    job.data.service.given = true;
    flags["data.service"] = "--data-workers";
  }
  set(wanted.pipeline_depth, job.cluster.pipeline_depth, "cluster.pipeline_depth",
      "--pipeline-depth");
  set(wanted.steps_per_closure, job.cluster.steps_per_closure, "cluster.steps_per_closure",
      "--steps-per-closure");
  set(wanted.transport, job.cluster.transport, "cluster.transport", "--transport");
  set(wanted.wire, job.cluster.wire, "cluster.wire", "--wire");
  set(wanted.computing.device, job.cluster.device, "cluster.device", "--device");
  set(wanted.computing.arithmetic, job.cluster.arithmetic, "cluster.arithmetic", "--arithmetic");
  set(wanted.computing.device_cache, job.cluster.device_cache, "cluster.device_cache",
      "--device-cache");
  set(wanted.ps_wait_seconds, job.cluster.ps_wait_seconds, "cluster.ps_wait_seconds", "--ps-wait");
  set(wanted.epochs, job.data.epochs, "data.epochs", "--epochs");
  set(wanted.steps, job.data.steps, "data.steps", "--steps");
  set(wanted.seed, job.model.seed, "model.seed", "--seed");
  set(wanted.model, job.model.kind, "model.kind", "--model");
  if (wanted.computing.deterministic) {
    job.cluster.deterministic = true;
    flags["cluster.deterministic"] = "--deterministic";
  }
  if (wanted.recovery.off) {
    job.cluster.recovery = false;
    flags["cluster.recovery"] = "--no-recovery";
  }
  if (wanted.recovery.on_demand) {
    job.cluster.restore_on_demand = true;
    flags["cluster.restore_on_demand"] = "--restore-on-demand";
  }
  if (!request.warm_start.empty()) job.warm_start.from = request.warm_start;
  set(wanted.checkpoint.local_folder, job.checkpoint.local_folder, "checkpoint.local_folder",
      "--local-checkpoints");
  if (wanted.checkpoint.every)
    job.checkpoint.every = parse_every(*wanted.checkpoint.every, "--checkpoint-every");
  if (wanted.evaluate_every)
    job.evaluation.every = parse_every(*wanted.evaluate_every, "--evaluate-every");
  GivenKeys given;
  for (const auto& [key, flag] : flags) given.insert(key);
  const PlaceOf place = [&](const std::string& key) {
    const auto flag = flags.find(key);
    return flag == flags.end() ? str(request.job_file, ": ", key) : flag->second;
  };
  verify_job(job, place, given);
}

// --dir is that of the process that starts the others, who find it in their environment.
std::vector<std::string> job_arguments(const CLI::App& app) {
  static const std::set<std::string> own = {
      "--help",  "--dir",  "--ps",           "--workers",      "--shards",
      "--lanes", "--kill", "--data-workers", "--memory-limit", "--row-log"};
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || own.contains(name)) continue;
    if (option->get_items_expected_max() == 0) {
      arguments.push_back(name);
      continue;
    }
    for (const std::string& value : option->results())
      arguments.push_back(option->get_positional() ? value : name + "=" + value);
  }
  return arguments;
}

void add_job_flags(CLI::App& app, TrainRequest& request) {
  JobOverrides& wanted = request.overrides;
  app.add_option("job", request.job_file, "The job, a TOML file (docs/job-file.md)")->required();
  app.add_option("--report", request.report, "Write the outcome to this file, as JSON");
  app.add_option("--dir", request.dir, "Folder of this run");
  app.add_flag("--overwrite", request.overwrite,
               "Replace a --report that is none of ours; save beside checkpoints of another run");
  app.add_option("--checkpoints", request.checkpoints,
                 "Folder of the checkpoints, or s3://BUCKET/PREFIX");
  app.add_option("--local-checkpoints", request.overrides.checkpoint.local_folder,
                 "Where machines share no folder: each ps writes its rows below this one of its "
                 "own machine, and --checkpoints has the rest");
  app.add_flag(
      "--store-single-writer", request.single_writer,
      "No other run saves into that bucket: save there though it has no conditional writes");
  CLI::Option* resume = app.add_option(
      "--resume", request.resume,
      "Go on from a checkpoint: its folder, a folder of them, a run's, or \"latest\"");
  app.add_flag("--partial", request.partial,
               "With --resume: what does not match the checkpoint begins anew, instead of an error")
      ->needs(resume);
  app.add_flag("--new-data", request.new_data,
               "With --resume: model, slots and step go on, the data begins at its start, and "
               "steps count from there")
      ->needs(resume);
  app.add_option("--warm-start", request.warm_start,
                 "Begin a new run with the rows of a checkpoint, which may be of another job; "
                 "[warm_start] says which of them")
      ->excludes(resume);
  app.add_option("--checkpoint-every", wanted.checkpoint.every,
                 "Steps (500), seconds (30s) or share of the run (10%)");
  app.add_option("--evaluate-every", wanted.evaluate_every, "The same for evaluations");
  app.add_option("--epochs", wanted.epochs, "Passes over the training data");
  app.add_option("--steps", wanted.steps, "Steps, instead of epochs");
  app.add_option("--steps-per-closure", wanted.steps_per_closure, "Steps that one closure takes");
  app.add_option("--pipeline-depth", wanted.pipeline_depth,
                 "Closures that overlap on a worker; 1: strict order");
  app.add_option("--seed", wanted.seed, "Of initial values and shuffling");
  app.add_option("--model", wanted.model, "wide_deep, wide, deep, dlrm, dcn_v2 or deepfm");
  app.add_option("--strategy", wanted.strategy.kind,
                 "What it runs on: parameter_server, hybrid, mirrored, multi_worker_mirrored, "
                 "central_storage or one_device; the file's keys of its own strategy do not count");
  app.add_option(
      "--replicas", wanted.strategy.replicas,
      "Replicas of mirrored and central_storage, and of each multi_worker_mirrored worker");
  app.add_option("--consistency", wanted.strategy.consistency,
                 "Of parameter_server: asynchronous, bounded with --max-staleness, or synchronous");
  app.add_option("--max-staleness", wanted.strategy.max_staleness,
                 "Steps by which an update may be stale, with --consistency bounded");
  app.add_option("--transport", wanted.transport, "auto, tcp or unix");
  app.add_option("--arithmetic", wanted.computing.arithmetic,
                 "What matrix products are computed in: float32, tf32, bfloat16 or mixed_bfloat16");
  app.add_option("--device", wanted.computing.device,
                 "What workers or replicas compute on: auto (the GPUs, or the CPU where there is "
                 "none), cpu, gpu, or one GPU, as gpu:0");
  app.add_flag("--deterministic", wanted.computing.deterministic,
               "On GPUs: what is computed repeats bit for bit, at the price of slower products");
  app.add_option(
      "--device-cache", wanted.computing.device_cache,
      "Of one_device on a GPU: what tables may take of its memory, as \"8 GB\" or a share, "
      "as 0.1; the rest of them stays in the host's memory (auto: all, if they fit)");
  app.add_option("--wire", wanted.wire, "What rows and gradients travel as: float32 or bfloat16");
  app.add_option("--ps-wait", wanted.ps_wait_seconds,
                 "Seconds that a lost ps may take to come back");
  app.add_option("--stuck-after", request.stuck_after_seconds,
                 "Seconds without progress after which a closure is told of (60)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--no-recovery", wanted.recovery.off, "A lost ps is an error at once");
  app.add_flag("--restore-on-demand", wanted.recovery.on_demand,
               "Steps run while rows of a checkpoint are still read, those that they want first: "
               "with --resume, and when a ps was lost");
}

}  // namespace cairn::tools
