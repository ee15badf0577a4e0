// Defaults of a job that depend on its data: how long it trains, whether it shuffles, and how its
// learning rates fall. bench/defaults measures them.
#pragma once
#include <cstdint>
#include <string>

#include "tools/job/spec/job.h"

namespace cairn::tools {

// Settles what the job leaves open, for training data of so many examples:
//   data.epochs    as many as make 2,000 steps, at least 1
//   data.shuffle   all examples, at most 2^19; none where lists have to stay together, or where a
//                  data service deals the examples out
//   learning rate  one that neither the file nor [callbacks.reduce_lr_on_plateau] decides falls in
//                  a straight line over the run, to a twentieth, and stays there
// Returns what was settled, for the terminal: "16 epochs, shuffled"; empty: nothing was open.
std::string settle_defaults(Job& job, std::int64_t examples);

// The steps that a job takes over so many examples: whole closures.
//   Errors  InvalidArgument: none, or too many.
std::int64_t steps_of(const Job& job, std::int64_t examples);

}  // namespace cairn::tools
