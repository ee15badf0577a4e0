// The optimizers as data: their names, the arguments of each, and how one is made of them. Programs
// that choose an optimizer by its name, and job files, read this table.
//   Thread  any: the table is constant.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/optimizers/optimizer.h"

namespace cairn::nn {

// The settings that an optimizer is made from.
struct OptimizerSettings {
  std::optional<LearningRate> learning_rate = {};  // empty: the kind's default
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;                        // RowwiseAdagrad has one form and ignores it
  std::string name;                              // of the optimizer's variables; empty: the kind's
  std::map<std::string, double> arguments = {};  // those given of the kind's own; a flag is 0 or 1
};

struct OptimizerKind {
  std::string name;                         // "adam"
  std::vector<std::string> numbers, flags;  // the arguments that it takes
  //   Errors  InvalidArgument: numbers that are not possible; and the constructor's. Arguments that
  //           it does not take are left out.
  std::function<std::shared_ptr<Optimizer>(const OptimizerSettings& settings)> make;

  bool takes(const std::string& argument) const;
};

// In the order of the documentation.
const std::vector<OptimizerKind>& optimizer_kinds();

// "sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", "lion", or one of
// ours: "lazy_adam", "rowwise_adagrad". With the reference's default arguments. Capital letters do
// not count.
//   Errors  InvalidArgument: another name; names the nearest.
std::shared_ptr<Optimizer> make_optimizer(const std::string& name);

}  // namespace cairn::nn
