// [optimizer] and [wide_optimizer] of a job file: every optimizer of nn/optimizer.h, with its
// arguments and schedules.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/optimizer.h"

namespace cairn::tools {

class TomlTable;

struct JobOptimizer {
  std::string kind = "adam";
  nn::Api api = nn::Api::kLegacy;
  float learning_rate = 0.001f;
  nn::LearningRate rate = learning_rate;  // that number, or a schedule that begins with it
  nn::ClippingOptions clipping;
  std::map<std::string, double> arguments;  // those given of the kind's own; a flag is 0 or 1
};

// The names that `kind` may have, in the order of the documentation.
std::vector<std::string> optimizer_kinds();

// Reads a table over what `inherited` says. Learning rate, schedule, clipping and api are inherited
// always, the kind's own arguments only where the kind is the same.
//   Errors  InvalidArgument, naming file, line and key: an unknown kind (with the nearest known
//           one), an argument that the kind does not take, a number that is not possible.
JobOptimizer read_optimizer(TomlTable table, const JobOptimizer& inherited);

// The optimizer of nn/ that the table describes. `name` is as in the optimizers' options.
std::shared_ptr<nn::Optimizer> make_optimizer(const JobOptimizer& wanted, const std::string& name);

}  // namespace cairn::tools
