// LearningRates: reports the rates of a job's optimizers while it trains and, if the job says so,
// lowers them when evaluations find the model no better ([callbacks.reduce_lr_on_plateau]).
//   Thread  one, the Trainer's.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "model/callbacks.h"
#include "nn/optimizers/optimizer.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The names under which reports show the rates of the job's parts: "learning_rate" for [optimizer]
// or the only part; "wide_learning_rate" for the wide part beside it.
std::vector<std::string> learning_rate_names(const Job& job);

class LearningRates {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  // A job that was verified. The optimizers' rates become variables if they may be lowered: before
  // any step is traced.
  LearningRates(const Job& job, std::vector<std::shared_ptr<nn::Optimizer>> optimizers);

  // Those with which the step behind `step` is taken, in the order of the names. In the strategy's
  // scope, once a step has been taken.
  Values at(std::int64_t step);
  // Takes the metrics of an evaluation, in the strategy's scope. What is to be said of a rate that
  // has been lowered for them, or of a metric that is not a number; empty: nothing.
  std::string consider(const std::vector<std::pair<std::string, double>>& metrics);

  // state() is the memory of the plateau rule, null if there is no rule; restore_state() continues
  // from an earlier run's, and ignores the state of a run that watched another metric. The rates
  // themselves are variables.
  Json state() const;
  void restore_state(const Json& saved);

 private:
  struct Part {
    std::string name;
    std::shared_ptr<nn::Optimizer> optimizer;
    nn::LearningRate rate;
    std::optional<double> current = std::nullopt;  // of a variable, once it was asked for
  };
  double rate_of(Part& part, std::int64_t step);

  std::vector<Part> parts_;
  std::string monitor_;
  std::optional<PlateauRule> plateau_;
};

}  // namespace cairn::tools
