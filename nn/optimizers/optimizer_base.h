// Optimizer: takes a loss to its gradients, and these through an update rule. The family is in
// nn/optimizers/optimizer.h.
//
// An optimizer holds no numbers: slots lie beside the rows of each variable, and `iterations` is a
// variable too, so both are placed, saved and restored like everything else. A table rule under
// sparse gradients of a variable with more than kLargeTableRows rows moves all of them at every
// step; that is logged once.
//   Thread  one. Copies share `iterations`.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "nn/base/clipping.h"
#include "nn/base/layer.h"
#include "nn/optimizers/schedule.h"

namespace cairn::nn {

inline constexpr std::int64_t kLargeTableRows = 1'000'000;

class Optimizer {
 public:
  // Records a training step: the gradients of scalar `loss` with respect to `variables` (none
  // given: every trainable variable that the loss depends on), clipped, applied, and iterations +
  // 1. Two optimizers may share a model by taking disjoint variables.
  //   Errors  InvalidArgument: the loss is not a float32 scalar; no variable, or one given that it
  //           does not depend on. When run: a loss that is NaN or infinite stops the step before
  //           anything is updated, naming step and variable.
  void minimize(const Array& loss, const std::vector<Variable>& variables = {}) const;
  // With several replicas in sync the gradients are summed over them, before they are clipped, and
  // all apply the same update: each replica's loss is its examples' part of the whole (divided by
  // the global batch size). iterations + 1 for all of them together.
  //   Errors  FailedPrecondition: called in the cross-replica context of several replicas.
  //
  // The same from gradients that the caller made or changed. Those of variable_gradients() bring
  // their loss, which is checked as above; others are applied as they are.
  void apply_gradients(std::vector<VariableGradient> gradients) const;

  // "NAME/iterations", int64: how often this optimizer has been applied, by any worker. Under
  // asynchronous training a step reads the count as of its pull, so a schedule may be late by the
  // step's staleness. It is not the coordinator's global step, which counts closures. Made at its
  // first use in the scope.
  Variable iterations() const;
  // The rate for the next step, recorded.
  Array learning_rate() const;
  // From now on the rate is a variable, "NAME/learning_rate", which begins with the number that the
  // optimizer was given. Steps that were traced before keep that number.
  //   Errors  FailedPrecondition: the rate follows a schedule.
  void make_rate_adjustable();
  bool rate_is_adjustable() const { return adjustable_rate_.has_value(); }
  // The variable's value now, and another value for the steps from now on; outside of a function.
  //   Errors  FailedPrecondition: the rate is not adjustable. InvalidArgument: a rate below 0.
  float current_learning_rate() const;
  void set_learning_rate(float rate) const;
  const UpdateRule& rule() const { return rule_; }

 protected:
  Optimizer(std::string name, UpdateRule rule, LearningRate learning_rate,
            ClippingOptions clipping);

 private:
  Array checked_rate(const std::vector<VariableGradient>& gradients) const;
  Variable rate_variable() const;
  void warn_of_whole_tables(const VariableGradient& gradient) const;

  std::string name_;
  UpdateRule rule_;
  LearningRate learning_rate_;
  ClippingOptions clipping_;
  LayerVariables iterations_;
  std::optional<LayerVariables> adjustable_rate_;
  // Names of variables that were warned of; shared by copies.
  std::shared_ptr<std::set<std::string>> warned_ = std::make_shared<std::set<std::string>>();
};

}  // namespace cairn::nn
