// Going on from a checkpoint of `cairn train`: to which job it belongs, and what was fitted to the
// data that its model was trained on. All of it is compared before anything is restored.
//   Thread  any that may touch files.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/json.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The metadata that a job saves with each checkpoint. It keeps vocabularies, means and deviations,
// so that a feature's ids mean what they meant in training. It also names data and batches, so that
// a position in the data can be found again. The first batch of that data was that of step
// `data_began`.
Json metadata_of(const Job& job, const FittedFeatures& features, std::int64_t steps,
                 std::int64_t data_began);

// The metadata of a checkpoint; null if it has none.
//   Errors  NotFound, DataLoss: as storage's read_manifest().
Json saved_metadata(const std::string& checkpoint);

// How a run goes on.
struct ResumeOptions {
  bool partial = false;   // --partial: the checkpoint may be of another model
  bool new_data = false;  // --new-data: the data is another, and the features are the checkpoint's
  // Vocabularies are the job's own, and not the checkpoint's.
  bool own_vocabularies = false;
  bool journal = false;  // it is a journal's run, and not a checkpoint
};

// A checkpoint's description of its job. A checkpoint of another program has none.
class SavedJob {
 public:
  //   Errors  NotFound, DataLoss: as storage's read_manifest().
  explicit SavedJob(const std::string& checkpoint, ResumeOptions options = {});
  // `where` names what holds the metadata: "the checkpoint /c/ckpt-1".
  SavedJob(Json metadata, std::string where, ResumeOptions options);

  // Whether it says on which features its model was trained.
  bool knows_features() const { return !part("features").empty(); }
  //   Errors  FailedPrecondition, which names both jobs: the checkpoint is of another one.
  void verify_job(const Job& job) const;
  // `fitted`: what the job's features are by its data as it is now.
  //   Errors  FailedPrecondition, with the first difference and the cure: the model was trained on
  //           other features or on other data.
  void verify_features(const Job& job, const FittedFeatures& fitted) const;
  // The same features as they were fitted when the model was trained. What the checkpoint does not
  // know stays as it is, if the restore is to be partial.
  //   Errors  FailedPrecondition: a feature was not fitted then.
  FittedFeatures features(const Job& job, const FittedFeatures& fitted) const;
  // The step at which its run began its data.
  std::int64_t data_began() const;

 private:
  Json part(const char* name) const;  // {}: there is none

  Json metadata_;
  std::string where_;
  ResumeOptions options_;
};

}  // namespace cairn::tools
