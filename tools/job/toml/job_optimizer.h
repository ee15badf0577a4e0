// [optimizer] and [wide_optimizer] of a job file: every optimizer of nn/optimizers/optimizer.h,
// with its arguments and schedules.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/optimizers/optimizer.h"

namespace cairn::tools {

class TomlTable;

struct JobOptimizer {
  std::string kind = "adagrad";
  nn::Api api = nn::Api::kLegacy;
  float learning_rate = 0;
  nn::LearningRate rate = learning_rate;  // that number, or a schedule that begins with it
  // Nothing was said of the rate: it is the kind's, and falls over the run (job_defaults.h).
  bool rate_is_default = true;
  nn::ClippingOptions clipping;
  std::map<std::string, double> arguments;  // those given of the kind's own; a flag is 0 or 1
};

// A part of the model: the wide one, or all else.
enum class ModelPart : std::uint8_t { kDeep, kWide };

// Reads a table over what `inherited` says. Learning rate, schedule, clipping and api are inherited
// always, the kind's own arguments only where the kind is the same. A rate that neither table gives
// is that of the kind and the part.
//   Errors  InvalidArgument, naming file, line and key: an unknown kind (with the nearest known
//           one), an argument that the kind does not take, a number that is not possible.
JobOptimizer read_optimizer(TomlTable table, const JobOptimizer& inherited, ModelPart part);

// The optimizer of nn/ that the table describes. `name` is as in the optimizers' options.
std::shared_ptr<nn::Optimizer> make_optimizer(const JobOptimizer& wanted, const std::string& name);

}  // namespace cairn::tools
