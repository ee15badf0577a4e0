// NotedRun: what a job writes into its run's journal for the coordinator that goes on with it.
//   Thread  values; any.
#pragma once
#include <cstdint>
#include <string>

#include "coordinator/cluster/engine_options.h"
#include "core/base/json.h"

namespace cairn::tools {

struct NotedRun {
  // The names of the notes.
  static constexpr const char* kJob = "job";
  static constexpr const char* kWatched = "job/watched";
  static constexpr const char* kEnd = "job/end";

  std::string where;           // for messages: "the journal in /j"
  bool begun = false;          // the job had noted itself: else nothing was trained
  Json metadata;               // as a checkpoint has it (resume.h)
  std::int64_t began = 0;      // how many steps of the data had ended at step 0 of the run
  std::int64_t pipelines = 1;  // of the training data
  std::string checkpoints;     // the folder in which the run saves
  Json watched;                // of early stopping and learning rates; null: nothing is watched
  std::string end_checkpoint;  // of the run's last step; empty: it has not been trained to its end

  // The note kJob of this run.
  std::string job_text() const;
  //   Errors  FailedPrecondition: the journal is of another program than a job.
  static NotedRun read(const ResumedRun& run, const std::string& folder);
};

}  // namespace cairn::tools
