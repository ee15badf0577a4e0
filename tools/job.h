// A job file: the whole training run, from data to evaluation, as TOML. docs/job-file.md lists
// every key.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/schema.h"
#include "tools/job_optimizer.h"

namespace cairn::tools {

struct JobData {
  std::string format = "csv";            // csv, records
  std::vector<std::string> train, test;  // absolute, or relative to the job file
  std::int64_t batch = 256;
  double epochs = 1;  // passes over the training data; ignored if steps is given
  std::int64_t steps = 0;
  // examples in a shuffle's block; 0: in the order of the file
  std::int64_t shuffle = 0;
  bool skip_bad_rows = false;
  CsvSchema csv;
  RecordSchema records;
};

struct JobFeatures {
  std::vector<std::string> numeric;  // standardised over the training data
  std::vector<std::string> log1p;    // log(1 + x) first, then standardised
  // one id a value that occurs in the training data, 0 for all others
  std::vector<std::string> vocabulary;
  std::int64_t vocabulary_min_count = 1;
  std::map<std::string, std::int64_t> hashed;            // column -> buckets
  std::map<std::string, std::vector<float>> bucketised;  // column -> boundaries
  struct Cross {
    std::vector<std::string> columns;
    std::int64_t buckets = 1000;
  };
  std::vector<Cross> crosses;    // of the wide part
  std::vector<std::string> ids;  // columns of the file that hold ids already (records)
  // how many: one number for all values of a field, or one a value
  std::map<std::string, std::vector<std::int64_t>> id_rows;
};

struct JobModel {
  std::string kind = "wide_deep";  // wide_deep, wide, deep, dlrm, dcn_v2, deepfm
  std::int64_t embedding_dim = 8;
  std::vector<std::int64_t> bottom = {64};  // of dlrm, dcn_v2 and deepfm: of the numbers' vector
  std::vector<std::int64_t> hidden = {64, 32};
  int cross_layers = 2;  // dcn_v2
  std::uint64_t seed = 0;
  std::int64_t hashed_from = 0;  // rows from which a table is hashed; 0: none is

  bool hashed(std::int64_t rows) const { return hashed_from > 0 && rows >= hashed_from; }
};

struct JobCluster {
  int ps = 2, workers = 2, shards = 1, lanes = 1;
  std::uint32_t pipeline_depth = 2;
  std::uint32_t send_window = 256;
  std::string transport = "auto";
  std::string arithmetic = "float32";  // of matrix products; or bfloat16
  std::string wire = "float32";        // of rows and gradients under way; or bfloat16
  std::int64_t partition_min_bytes = 256 << 10;
  double ps_wait_seconds = 600;
  bool recovery = true;
  std::int64_t steps_per_closure = 1;
};

// "500" steps, "30s", or "10%" of the run; empty: never. Where several are set, whichever comes
// first.
struct Every {
  std::int64_t steps = 0;
  double seconds = 0;
  double share = 0;
  bool set() const { return steps > 0 || seconds > 0 || share > 0; }
};
Every parse_every(const std::string& text, const std::string& where);  // InvalidArgument

struct JobCheckpoint {
  std::string folder;  // empty: RUN_DIR/checkpoints
  Every every = {.seconds = 600, .share = 0.1};
  std::size_t keep_last = 5;
};

struct JobEvaluation {
  Every every;
  std::int64_t batch = 2048;
};

struct Job {
  std::string name;
  std::string text;  // as read, for the report and the checkpoints
  JobData data;
  JobFeatures features;
  JobModel model;
  // of the deep part, and of the wide part unless it has its own
  JobOptimizer optimizer;
  JobOptimizer wide_optimizer;
  JobCluster cluster;
  JobCheckpoint checkpoint;
  JobEvaluation evaluation;
};

// Errors NotFound: no such file. InvalidArgument: file, line and what is wrong; of an unknown key
// the nearest known one.
Job read_job(const std::string& path);
Job parse_job(const std::string& text, const std::string& path);

}  // namespace cairn::tools
