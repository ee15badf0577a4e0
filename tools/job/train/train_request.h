// The request for a training run: what a command line or a program states.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cairn::tools {

struct Job;

// Flags that each override a key of the job file (docs/job-file.md).
struct JobOverrides {
  // Overrides of the keys in [strategy].
  struct Strategy {
    std::optional<std::string> kind, consistency;
    std::optional<std::uint32_t> max_staleness;
    // Under a kind with ps, cluster.replicas: the copies of each shard's rows.
    std::optional<int> replicas;
  };
  Strategy strategy;
  std::optional<int> ps, workers, shards, lanes, data_workers;
  struct PsMemory {
    std::optional<std::string> limit, row_log;
  };
  PsMemory ps_memory;  // of each ps
  std::optional<std::uint32_t> pipeline_depth;
  std::optional<std::int64_t> steps, steps_per_closure;
  std::optional<double> epochs, ps_wait_seconds;
  std::optional<std::uint64_t> seed;
  // Which device computes, and in which arithmetic.
  struct Computing {
    std::optional<std::string> arithmetic, device, device_cache;
    bool deterministic = false;
  };
  Computing computing;
  std::optional<std::string> transport, wire, evaluate_every, model;
  struct Checkpoint {
    std::optional<std::string> every, local_folder;
  };
  Checkpoint checkpoint;
  struct Recovery {
    bool off = false, on_demand = false;
  };
  Recovery recovery;
};

struct TrainRequest {
  std::string job_file;  // TOML (docs/job-file.md)
  // Instead of a file: the job as a JSON object, with the same sections and keys.
  std::string job_values = "";
  // The folder that relative paths in the job are in; empty: that of the file, or the working one.
  std::string beside = "";
  JobOverrides overrides;
  std::string report;       // JSON file to write; empty: none
  std::string dir;          // of the run; empty: a new one under runs/
  std::string checkpoints;  // folder; empty: the job's, or RUN_DIR/checkpoints
  // a checkpoint's folder, a folder of checkpoints, a run's, or "latest"
  std::string resume;
  // the same but for "latest": a run that begins anew takes its rows (JobWarmStart::from)
  std::string warm_start;
  // a report or checkpoints that are no business of this run may be there
  bool overwrite = false;
  bool single_writer = false;  // CheckpointPolicy::single_writer
  bool partial = false;        // variables that the checkpoint does not match begin anew
  bool new_data = false;       // go on from the checkpoint with data that it has not seen
  bool take_over = false;      // of a cluster at which another coordinator is at work
  std::vector<std::string> kills;
  std::optional<double> stuck_after_seconds;
  // of a given cluster; empty: as the environment has them
  std::string cluster_id, token_file;
  // The journal of a run on a given cluster (EngineOptions::journal).
  struct Journal {
    std::string folder;    // empty: as the environment has it
    std::string sync;      // "always", or so long as "50ms"; empty: as JournalOptions has it
    bool standby = false;  // wait until the coordinator at work there has gone, and go on then
  };
  Journal journal;
};

// The name under which the copies of each row were asked for: "--replicas", or the job's key.
std::string place_of_replicas(const TrainRequest& request);

// Overrides of the request change the job, and what they say is checked as the file is. If they
// name a strategy, what the file says for its own is not read.
//   Errors  InvalidArgument: a value, or flags that contradict each other; names the flag.
void apply(const TrainRequest& request, Job& job);

}  // namespace cairn::tools
