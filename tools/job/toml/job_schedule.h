// [optimizer.schedule] of a job file: every schedule of nn/optimizers/schedule.h.
#pragma once
#include "nn/optimizers/schedule.h"

namespace cairn::tools {

class TomlTable;

// Reads the schedule of `optimizer`, which begins with the rate `initial`.
//   Errors  InvalidArgument: an unknown kind (with the nearest known one) or key, or what the
//           schedule itself refuses, with the place of `optimizer`.
nn::LearningRate read_schedule(const TomlTable& optimizer, TomlTable table, float initial);

}  // namespace cairn::tools
