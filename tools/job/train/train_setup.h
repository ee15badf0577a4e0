// The steps that every way of running a job shares: reading and trying before anything starts, and
// reporting once it has ended. In the order in which a run calls them.
//   Thread  one.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "storage/folder_lock.h"
#include "tools/job/run/trainer.h"
#include "tools/job/train/train_job.h"
#include "tools/job/train/train_request.h"

namespace cairn::tools {

// How long a run that was just killed may keep its folder.
inline constexpr Duration kLockPatience = std::chrono::seconds(2);

// A job with the flags' changes, and what its training data says of its features.
struct PreparedJob {
  Job job;
  FittedFeatures features;
};

// The job with the flags' changes.
//   Errors  those of the job file and the flags.
Job job_of(const TrainRequest& request);
// The same for a run of this machine: finds what needs no data to be refused.
//   Errors  also InvalidArgument: --data-workers where there are no servers; more replicas than ps.
//           NotFound: a device.
Job job_to_train(const TrainRequest& request);
// Reads the job and its data once, and says its findings.
//   Errors  those of the job file, the flags, the data; the report's path holds another file.
PreparedJob prepare(const TrainRequest& request, RunOutput& output);

// Where the run saves, as an absolute path.
std::string checkpoint_folder(const TrainRequest& request, const Job& job,
                              const std::string& run_dir);
// The checkpoint that the run is to go on from, as an absolute path; empty: none. `folder`: where
// it saves.
//   Errors  NotFound: there is no such checkpoint.
std::string find_resume(const TrainRequest& request, const Job& job, const std::string& folder);
// Where the run leaves its trained model.
std::string model_folder(const std::string& run_dir);
// Where it leaves the same without weights when it begins (serving/server/version_places.h).
std::string graph_folder(const std::string& run_dir);
// The run's own folder of checkpoints, whatever other one it saves in.
std::string own_checkpoints(const std::string& run_dir);
// One process of a run tries the outputs of its end now, before hours of training, and finds the
// checkpoint to go on from.
enum class Trial : std::uint8_t { kYes, kNo };
//   Errors  the disk's. NotFound: there is no such checkpoint.
TrainerOptions trainer_options(const TrainRequest& request, const Job& job,
                               const std::string& folder, RunOutput& output,
                               Trial trial = Trial::kYes);
// The reporter of the process that reports how the run is doing. It writes the files of
// [callbacks], and the history in the run's folder; if that cannot be written to, it warns and
// keeps none.
//   Errors  those of run_files.h.
std::shared_ptr<RunReporter> reporter_in(const std::string& run_dir, const TrainRequest& request,
                                         const Job& job, const TrainerOptions& options);
// The job's features; of a run that goes on from a checkpoint, those of the checkpoint.
//   Errors  FailedPrecondition: it is of another job, of other features or of other data, and the
//           options do not say that this is meant (resume.h).
FittedFeatures features_of(const PreparedJob& prepared, const TrainerOptions& options);
// The claim to the folder, before anything is done: a run that may not save is not begun.
std::shared_ptr<const storage::FolderLock> claim(const TrainRequest& request,
                                                 const TrainerOptions& trainer,
                                                 Duration patience = kLockPatience);

// Before anything that may still fail: whatever comes, what was trained is known.
void say_outcome(const PreparedJob& prepared, const TrainingOutcome& outcome, RunOutput& output);
// The run's result; writes the report, if one is wanted. `trained` has the run's folders already.
// `restarts`: by role.
TrainedJob finish(const PreparedJob& prepared, const TrainRequest& request,
                  const TrainingOutcome& outcome, const std::map<std::string, int>& restarts,
                  TrainedJob trained);

}  // namespace cairn::tools
