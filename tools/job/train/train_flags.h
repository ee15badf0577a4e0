// The flags of `cairn train` and `cairn-coordinator`, listed once: for command lines, for programs
// that name them as keywords, and for the processes that a run passes them on to.
#pragma once
#include <string>
#include <vector>

#include "tools/job/train/train_request.h"

namespace cairn::tools {

// Calls flag(name, field, help) for each flag that both programs have, in the order of their help.
// A field is a text, a bool, or an optional text or number.
template <typename Flag>
void for_each_job_flag(TrainRequest& request, Flag&& flag) {
  JobOverrides& wanted = request.overrides;
  flag("--report", request.report, "Write the outcome to this file, as JSON");
  flag("--dir", request.dir, "Folder of this run");
  flag("--overwrite", request.overwrite,
       "Replace a --report that is none of ours; save beside checkpoints of another run");
  flag("--checkpoints", request.checkpoints, "Folder of the checkpoints, or s3://BUCKET/PREFIX");
  flag("--local-checkpoints", wanted.checkpoint.local_folder,
       "Where machines share no folder: each ps writes its rows below this one of its own machine, "
       "and --checkpoints has the rest");
  flag("--store-single-writer", request.single_writer,
       "No other run saves into that bucket: save there though it has no conditional writes");
  flag("--resume", request.resume,
       "Go on from a checkpoint: its folder, a folder of them, a run's, or \"latest\"");
  flag("--partial", request.partial,
       "With --resume: what does not match the checkpoint begins anew, instead of an error");
  flag("--new-data", request.new_data,
       "With --resume: model, slots and step go on, the data begins at its start, and steps count "
       "from there");
  flag("--warm-start", request.warm_start,
       "Begin a new run with the rows of a checkpoint, which may be of another job; [warm_start] "
       "says which of them");
  flag("--checkpoint-every", wanted.checkpoint.every,
       "Steps (500), seconds (30s) or share of the run (10%)");
  flag("--evaluate-every", wanted.evaluate_every, "The same for evaluations");
  flag("--epochs", wanted.epochs, "Passes over the training data");
  flag("--steps", wanted.steps, "Steps, instead of epochs");
  flag("--steps-per-closure", wanted.steps_per_closure, "Steps that one closure takes");
  flag("--pipeline-depth", wanted.pipeline_depth,
       "Closures that overlap on a worker; 1: strict order");
  flag("--seed", wanted.seed, "Of initial values and shuffling");
  flag("--model", wanted.model, "wide_deep, wide, deep, dlrm, dcn_v2 or deepfm");
  flag("--strategy", wanted.strategy.kind,
       "What it runs on: parameter_server, hybrid, mirrored, multi_worker_mirrored, "
       "central_storage or one_device; the file's keys of its own strategy do not count");
  flag("--replicas", wanted.strategy.replicas,
       "Copies of each row under parameter_server and hybrid, each on another ps, so that the loss "
       "of a ps loses no update (1); else replicas of mirrored and central_storage, and of each "
       "multi_worker_mirrored worker");
  flag("--consistency", wanted.strategy.consistency,
       "Of parameter_server: asynchronous, bounded with --max-staleness, or synchronous");
  flag("--max-staleness", wanted.strategy.max_staleness,
       "Steps by which an update may be stale, with --consistency bounded");
  flag("--transport", wanted.transport, "auto, tcp or unix");
  flag("--arithmetic", wanted.computing.arithmetic,
       "What matrix products are computed in: float32, tf32, bfloat16 or mixed_bfloat16");
  flag("--device", wanted.computing.device,
       "What workers or replicas compute on: auto (the GPUs, or the CPU where there is none), cpu, "
       "gpu, or one GPU, as gpu:0");
  flag("--deterministic", wanted.computing.deterministic,
       "On GPUs: what is computed repeats bit for bit, at the price of slower products");
  flag("--device-cache", wanted.computing.device_cache,
       "Of one_device on a GPU: what tables may take of its memory, as \"8 GB\" or a share, as "
       "0.1; the rest of them stays in the host's memory (auto: all, if they fit)");
  flag("--wire", wanted.wire, "What rows and gradients travel as: float32 or bfloat16");
  flag("--ps-wait", wanted.ps_wait_seconds, "Seconds that a lost ps may take to come back");
  flag("--stuck-after", request.stuck_after_seconds,
       "Seconds without progress after which a closure is told of (60)");
  flag("--no-recovery", wanted.recovery.off, "A lost ps is an error at once");
  flag("--restore-on-demand", wanted.recovery.on_demand,
       "Steps run while rows of a checkpoint are still read, those that they want first: with "
       "--resume, and when a ps was lost");
}

// The same for those of `cairn train` alone, which starts the cluster.
template <typename Flag>
void for_each_cluster_flag(TrainRequest& request, Flag&& flag) {
  JobOverrides& wanted = request.overrides;
  flag("--ps", wanted.ps, "Parameter servers");
  flag("--workers", wanted.workers, "Workers");
  flag("--shards", wanted.shards, "Threads of a ps; auto (default): its share of the processors");
  flag("--lanes", wanted.lanes,
       "Closures that a worker computes at once; auto (default): the same");
  flag("--memory-limit", wanted.ps_memory.limit,
       "Memory of each ps, as \"8 GB\" or 50%: rows of hashed variables that do not fit lie on a "
       "disk (none)");
  flag("--row-log", wanted.ps_memory.row_log,
       "The folder for them, on a local disk (row-log in the run's)");
  flag("--data-workers", wanted.data_workers,
       "Workers of a data service, beside a dispatcher, through which the training data is read "
       "([data.service])");
  flag("--kill", request.kills,
       "SIGKILL a role on the way: worker:1@40%, ps:0@12s, data_worker:0@20%");
}

// The command line of a cairn-coordinator that runs `job_file` with the flags that the request has,
// but for the folder, which a process of a run finds in its environment.
std::vector<std::string> coordinator_arguments(TrainRequest request, const std::string& job_file);

}  // namespace cairn::tools
