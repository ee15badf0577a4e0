// A job file: the whole training run, from data to evaluation, as TOML. docs/job-file.md lists
// every key.
//
// Each struct is a section of the file, with its defaults, which are the documentation's. A job is
// a value: flags of the command line change it after it was read, and it is then verified as a
// whole (job_limits.h).
//   Source  TOML 1.0, https://toml.io/en/v1.0.0.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tools/job/spec/job_callbacks.h"
#include "tools/job/spec/job_data.h"
#include "tools/job/spec/job_features.h"
#include "tools/job/spec/job_tables.h"
#include "tools/job/toml/job_optimizer.h"
#include "tools/job/toml/job_threshold.h"

namespace cairn::tools {

// [model]: the network over the features.
struct JobModel {
  std::string kind = "wide_deep";  // wide_deep, wide, deep, dlrm, dcn_v2, deepfm, two_tower
  std::int64_t embedding_dim = 8;
  std::vector<std::int64_t> bottom = {64};  // of dlrm, dcn_v2 and deepfm: of the numbers' vector
  std::vector<std::int64_t> hidden = {64, 32};
  int cross_layers = 2;  // dcn_v2
  std::uint64_t seed = 0;
  std::string combiner = "mean";  // of bags of ids; or sum, sqrtn
  std::int64_t hashed_from = 0;   // rows from which a table is hashed; 0: none is
  // For two_tower: the features of each tower. A score is the product of the towers' vectors, which
  // have length 1 if they are normalized, divided by the temperature.
  std::vector<std::string> query, candidate;
  double temperature = 1;
  bool normalize = false;
  // or regression, multiclass, ranking, retrieval (job_objective.h)
  std::string objective = "binary";
  // For regression: mse, huber or mae; for ranking: softmax or bpr.
  std::string loss = "mse";
  bool standardize = false;  // the label, over the training data; of regression true by default
  double huber_delta = 1;    // of huber: the error from which it grows linearly
  // The number of classes for multiclass, and their texts in the label's column; empty: 0, 1, ...
  std::int64_t classes = 0;
  std::vector<std::string> class_texts;
  // Factors of the losses of each class, for binary and multiclass; empty if all are 1.
  std::vector<double> class_weights;

  // Whether losses compare the rows of a list.
  bool ranks() const { return objective == "ranking"; }
  JobThreshold threshold;  // of binary

  // Numbers that the network gives for an example.
  std::int64_t outputs() const { return objective == "multiclass" ? classes : 1; }

  // Whether the wide part is hashed, with a column of so many rows.
  bool hashed(std::int64_t rows) const { return hashed_from > 0 && rows >= hashed_from; }
};

// [strategy]: what the job runs on (job_strategy.h), and how far workers may drift apart.
struct JobStrategy {
  std::string kind = "parameter_server";
  std::string consistency = "asynchronous";  // of parameter_server; or bounded, synchronous
  // For bounded: the bound in steps, each of which is an update from every lane. 0: not given.
  std::uint32_t max_staleness = 0;
  int replicas = 0;  // of each process, on its logical CPUs. 0: nothing was said

  // Replicas per process, for kinds whose processes have several, or may have.
  int replicas_of_process() const {
    return replicas > 0 ? replicas : kind == "multi_worker_mirrored" ? 1 : 2;
  }

  // Whether variables live on parameter servers, all of them or the tables.
  bool on_servers() const { return kind == "parameter_server" || kind == "hybrid"; }
  // Whether it takes processes beside the one that was started.
  bool on_workers() const { return on_servers() || kind == "multi_worker_mirrored"; }
};

// As many threads as the machine has processors for, which job_threads.h fills in.
inline constexpr int kAutoThreads = -1;

// [cluster]: how many processes and threads, and how they work. Names are those of EngineOptions
// and of the servers' flags.
struct JobCluster {
  int ps = 2, workers = 2;
  int shards = kAutoThreads, lanes = kAutoThreads;
  std::string memory_limit = "none";  // of each ps: core/base/memory_limit.h
  std::string row_log;                // the folder for rows beyond it; empty: the run's
  std::string threads_why;            // why there are so many of both; empty: the job says it
  std::uint32_t pipeline_depth = 2;
  std::uint32_t send_window = 256;
  std::string transport = "auto";
  std::string arithmetic = "float32";  // of matrix products (core/base/arithmetic.h)
  std::string wire = "float32";        // of rows and gradients under way; or bfloat16
  // The devices that workers, or the replicas of a process, compute on, in the words of
  // core/kernels/chosen_devices.h. Empty: nothing was said.
  std::string device;
  bool deterministic = false;         // results repeat bit for bit on the same GPU
  std::string device_cache = "auto";  // of tables on a GPU: core/base/device_cache.h
  std::int64_t partition_min_bytes = 256 << 10;
  // How a ps may be lost.
  struct PsLoss {
    int replicas = 1;  // of each row, on as many ps
    double ps_wait_seconds = 600;
    bool recovery = true;
    bool restore_on_demand = false;
  };
  PsLoss ps_loss;
  std::int64_t steps_per_closure = 1;
};

// How often something is done: every "500" steps, every "30s", or at every "10%" of the run; empty:
// never. If several are set, the one that comes first counts.
struct Every {
  std::int64_t steps = 0;
  double seconds = 0;
  double share = 0;
  bool set() const { return steps > 0 || seconds > 0 || share > 0; }
};
// Errors  InvalidArgument: it is none of these; `where` says whose text it is.
Every parse_every(const std::string& text, const std::string& where);

// [checkpoint]: where and how often to save, and how many to keep.
struct JobCheckpoint {
  std::string folder;        // empty: RUN_DIR/checkpoints
  std::string local_folder;  // of each ps, for its rows; empty: they are in `folder`
  Every every = {.seconds = 600, .share = 0.1};
  std::size_t keep_last = 5;
  std::size_t keep_every = 0;
  std::size_t full_every = 1;         // 1: each holds all rows; more: the others are deltas
  std::size_t consolidate_after = 0;  // deltas; 0: never
  // How rows lie in the files: CheckpointPolicy::encoding.
  std::string rows = "exact", slots = "exact", compression = "none";
  std::vector<std::string> encode;
};

// [warm_start]: a checkpoint, which may be of another job, whose rows a new run begins with
// (tools/job/run/warm_start.h). The other keys are RestoreOptions'.
struct JobWarmStart {
  std::string from;  // a checkpoint's folder, a folder of them or a run's; empty: none
  std::vector<std::string> include, exclude;
  std::map<std::string, std::string> rename;
  bool slots = true;
};

// [evaluation]: how often to evaluate the model, besides at the end: on the validation data if
// there is some, otherwise on the test data.
struct JobEvaluation {
  Every every;
  std::int64_t batch = 2048;
  std::vector<std::string> metrics;  // in the order given; empty: all of the objective's
};

// [early_stopping]: the run ends where evaluations on the way find the model no better.
struct JobEarlyStopping {
  bool given = false;
  std::string monitor;   // a metric; empty: the first of the evaluation's
  int patience = 3;      // evaluations in a row without a better one
  double min_delta = 0;  // a smaller gain does not count as better
  bool restore_best = true;
};

// The file as a whole.
struct Job {
  // The sections that speak of the table of a feature with so many ids.
  JobTable table_of(const std::string& feature, std::int64_t rows) const {
    return tables.of(feature, rows, model.hashed_from);
  }

  std::string name;
  std::string text;  // as read, for the report and the checkpoints
  JobData data;
  JobValidation validation;
  JobFeatures features;
  JobModel model;
  JobTables tables;
  // [optimizer] and [wide_optimizer]: of the deep part, and of the wide part, which takes the first
  // where it says nothing.
  JobOptimizer optimizer;
  JobOptimizer wide_optimizer;
  JobStrategy strategy;
  JobCluster cluster;
  JobCheckpoint checkpoint;
  JobWarmStart warm_start;
  JobEvaluation evaluation;
  JobEarlyStopping early_stopping;
  JobCallbacks callbacks;
};

// Reads a job file, or its text; relative paths in it are beside `path`.
//   Errors  NotFound: there is no such file. InvalidArgument: file, line and what is wrong; for an
//           unknown key also the nearest known one.
Job read_job(const std::string& path);
Job parse_job(const std::string& text, const std::string& path);
// The job of a program, as a JSON object with a file's sections and keys. Relative paths in it are
// in the folder `beside`; empty: in the working folder. Messages call it "job", in that folder, and
// name no lines.
Job job_of_values(const std::string& values, const std::string& beside = "");

}  // namespace cairn::tools
