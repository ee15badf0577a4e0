// Optimizers by the names that the reference knows them by, with their default arguments.
#pragma once
#include <memory>
#include <string>

#include "nn/optimizers/optimizer_base.h"

namespace cairn::nn {

// "sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", or one of ours:
// "lazy_adam", "rowwise_adagrad". Capital letters do not count.
//   Errors  InvalidArgument: another name; names the nearest.
std::shared_ptr<Optimizer> make_optimizer(const std::string& name);

}  // namespace cairn::nn
