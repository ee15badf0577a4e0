#include "tools/job/train/train_request.h"

#include <map>

#include "core/base/error.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"

namespace cairn::tools {

std::string place_of_replicas(const TrainRequest& request) {
  return request.overrides.strategy.replicas ? "--replicas" : "cluster.replicas";
}

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
  if (job.strategy.on_servers())
    set(wanted.strategy.replicas, job.cluster.ps_loss.replicas, "cluster.replicas", "--replicas");
  else
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
  set(wanted.ps_wait_seconds, job.cluster.ps_loss.ps_wait_seconds, "cluster.ps_wait_seconds",
      "--ps-wait");
  set(wanted.epochs, job.data.epochs, "data.epochs", "--epochs");
  set(wanted.steps, job.data.steps, "data.steps", "--steps");
  set(wanted.seed, job.model.seed, "model.seed", "--seed");
  set(wanted.model, job.model.kind, "model.kind", "--model");
  if (wanted.computing.deterministic) {
    job.cluster.deterministic = true;
    flags["cluster.deterministic"] = "--deterministic";
  }
  if (wanted.recovery.off) {
    job.cluster.ps_loss.recovery = false;
    flags["cluster.recovery"] = "--no-recovery";
  }
  if (wanted.recovery.on_demand) {
    job.cluster.ps_loss.restore_on_demand = true;
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

}  // namespace cairn::tools
