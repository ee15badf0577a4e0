// Model::State: the members of a Model, for model/ alone.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/step_functions.h"
#include "model/steps/step_runner.h"
#include "strategy/base/strategy.h"

namespace cairn {

struct Model::State {
  // Made at its first use, so that a model that is only built needs no workers.
  StepRunner& runner();
  // `weights`: as of StepFunctions::test().
  Function& test_function(const std::string& weights);

  std::string name;
  Strategy& strategy;
  Network network;
  std::optional<StepFunctions> functions;  // none: not compiled
  std::unique_ptr<StepRunner> step_runner;
  std::map<std::string, Function> tests;  // of `functions`, by the column of weights
  std::vector<Variable> variables;        // may be none
  ElementSpec input;                      // the batches it was built for, without a label
  Graph graph;                            // of a prediction; no outputs: not built
};

// How a step of this runner is shared.
StepFunctions::Shares shares_of(StepRunner& runner);

}  // namespace cairn
