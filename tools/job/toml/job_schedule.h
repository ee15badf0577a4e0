// [optimizer.schedule] of a job file: every schedule of nn/optimizers/schedule.h.
#pragma once
#include "nn/optimizers/schedule.h"

namespace cairn::tools {

class TomlTable;

// Reads a schedule that begins with the rate `initial`.
//   Errors  InvalidArgument: an unknown kind (with the nearest known one) or key, or what the
//           schedule itself refuses.
nn::LearningRate read_schedule(TomlTable table, float initial);

}  // namespace cairn::tools
