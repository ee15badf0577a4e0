// The model that a job has trained, on disk: what `cairn predict` takes.
#pragma once
#include <optional>
#include <string>

#include "strategy/base/strategy.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

struct TrainedModelPlace {
  std::string checkpoint;  // that has its weights; empty: it is saved without
  std::string folder;      // to write it to
  // The probability above which the model decides for 1; unset: it decides nothing.
  std::optional<float> threshold = {};
};

// Saves the probability that the network gives, and under a threshold what it decides (`decision`,
// int32, 0 or 1), with the job's features and the form of its data.
// The job's name and its file go into the metadata, and so does the threshold.
//   Errors  those of save_model() (model/saved/saved_model.h).
void save_trained_model(const Job& job, const FittedFeatures& features, const JobNetwork& network,
                        Strategy& strategy, const TrainedModelPlace& place);

// The model that a path on a command line means: its own folder, or that of the run that saved it.
//   Errors  NotFound: neither; names what was looked for.
std::string model_at(const std::string& path);

}  // namespace cairn::tools
