// The files of [callbacks] that tell of a run while it trains: a CSV file, and event files for
// TensorBoard. Each is tried at the start, and begun when the run begins.
//   Errors  AlreadyExists: the file is not ours; FailedPrecondition: a log to be gone on with has
//           other columns; those of the disk. All name file, line and key of the job.
//   Thread  one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tools/job/run/run_reporter.h"
#include "tools/job/spec/job_callbacks.h"
#include "tools/job/train/user_files.h"

namespace cairn::tools {

// If a log of an earlier run exists: replace it, or append to it.
enum class Earlier : std::uint8_t { kReplace, kGoOn };

// A line per step() and per evaluation(), with the columns step, seconds, loss, examples_per_s, the
// learning rates, data and the metrics; what a line does not tell is empty.
std::unique_ptr<RunListener> csv_listener(const JobOutput& output,
                                          const std::vector<std::string>& learning_rates,
                                          const std::vector<std::string>& metrics, Earlier earlier,
                                          Overwrite overwrite);

// Scalars: loss, examples_per_s and the learning rates in the folder "train", metrics in that of
// their data's name.
std::unique_ptr<RunListener> tensorboard_listener(const JobOutput& output);

}  // namespace cairn::tools
