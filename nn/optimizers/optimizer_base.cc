#include "nn/optimizers/optimizer_base.h"

#include <set>
#include <utility>

#include "core/base/log.h"
#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

// A variable that was named and gets no gradient is nearly always a mistake in the model, and would
// otherwise simply never change.
void check_all_have_gradients(const std::vector<VariableGradient>& gradients,
                              const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    bool found = false;
    for (const VariableGradient& gradient : gradients)
      found = found || gradient.variable.shared_spec() == variable.shared_spec();
    if (!found)
      throw InvalidArgumentError(
          str("minimize: the loss does not depend on variable \"", variable.name(), "\""));
  }
}

}  // namespace

Optimizer::Optimizer(std::string name, UpdateRule rule, LearningRate learning_rate,
                     ClippingOptions clipping)
    : name_(std::move(name)),
      rule_(rule),
      learning_rate_(std::move(learning_rate)),
      clipping_(clipping) {
  verify_rule(rule_);
  verify(clipping_);
  if (learning_rate_.schedule() == nullptr && !(learning_rate_.value() >= 0))
    throw InvalidArgumentError(
        str(name_, ": the learning rate must be at least 0, got ", learning_rate_.value()));
}

Variable Optimizer::iterations() const {
  return iterations_.in_scope([&](VariableCreator& creator) {
    VariableSpec spec{.name = name_ + "/iterations", .dtype = DType::kInt64, .shape = {}};
    spec.aggregation = Aggregation::kOnlyFirstReplica;  // replicas in sync take one step together
    spec.trainable = false;
    return std::vector<Variable>{creator.create_variable(std::move(spec))};
  })[0];
}

Variable Optimizer::rate_variable() const {
  if (!adjustable_rate_)
    throw FailedPreconditionError(
        str(name_, ": the learning rate is part of the steps that were traced, and cannot be set; ",
            "call make_rate_adjustable() before the first of them"));
  return adjustable_rate_->in_scope([&](VariableCreator& creator) {
    VariableSpec spec{.name = name_ + "/learning_rate", .shape = {}};
    spec.initializer = Initializer::constant(learning_rate_.value());
    spec.aggregation = Aggregation::kOnlyFirstReplica;
    spec.trainable = false;
    return std::vector<Variable>{creator.create_variable(std::move(spec))};
  })[0];
}

void Optimizer::make_rate_adjustable() {
  if (learning_rate_.schedule() != nullptr)
    throw FailedPreconditionError(
        str(name_, ": the learning rate follows a schedule, which decides it at every step; ",
            "give the optimizer a number to adjust it by hand"));
  if (!adjustable_rate_) adjustable_rate_.emplace();
}

float Optimizer::current_learning_rate() const {
  return rate_variable().read().eval().item<float>();
}

void Optimizer::set_learning_rate(float rate) const {
  if (!(rate >= 0))
    throw InvalidArgumentError(str(name_, ": the learning rate must be at least 0, got ", rate));
  rate_variable().assign(Array(rate));
}

Array Optimizer::learning_rate() const {
  if (adjustable_rate_) return rate_variable().read();
  if (learning_rate_.schedule() == nullptr) return Array(learning_rate_.value());
  return (*learning_rate_.schedule())(cast(iterations().read(), DType::kFloat32));
}

void Optimizer::minimize(const Array& loss, const std::vector<Variable>& variables) const {
  if (!loss.defined() || loss.rank() != 0 || loss.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("minimize wants a float32 scalar, got ",
                                   loss.defined() ? loss.type().to_string() : "nothing",
                                   "; take the mean() of a loss for each example"));
  std::vector<VariableGradient> gradients = variable_gradients(loss, variables);
  check_all_have_gradients(gradients, variables);
  apply_gradients(std::move(gradients));
}

// The updates need the rate, and the rate needs the check of each loss: a bad one ends the step
// before its push, and no update, in whatever order it is recorded, goes without the check.
Array Optimizer::checked_rate(const std::vector<VariableGradient>& gradients) const {
  Array rate = learning_rate();
  std::set<std::pair<const void*, int>> checked;
  for (const VariableGradient& gradient : gradients) {
    const Array& loss = gradient.loss;
    if (!loss.defined() || !checked.insert({loss.node().get(), loss.output()}).second) continue;
    rate = where(is_finite(check_numerics(loss, "loss")), rate, Array(0.0f));
  }
  return rate;
}

// Recorded in this order: the rate with its check, the sums over replicas, clipping, one update per
// variable, and the count of steps, which after() makes wait for the checked rate.
void Optimizer::apply_gradients(std::vector<VariableGradient> gradients) const {
  if (gradients.empty())
    throw InvalidArgumentError(str(name_, ": no trainable variable to update"));
  const Array learning_rate = checked_rate(gradients);
  // Last first: in that order the backward pass makes them, and no all-reduce passes another.
  for (auto each = gradients.rbegin(); each != gradients.rend(); ++each)
    if (!each->is_sparse()) each->dense = sum_over_replicas(each->variable, each->dense);
  VariableCreator& creator = current_variable_creator();
  for (const VariableGradient& gradient : clip(std::move(gradients), clipping_)) {
    warn_of_whole_tables(gradient);
    if (is_kept(rule_)) creator.add_slots(gradient.variable, rule_);
    if (gradient.is_sparse()) {
      gradient.variable.update(rule_, gradient.sparse, learning_rate);
    } else {
      gradient.variable.update(rule_, gradient.dense, learning_rate,
                               Variable::GradientOf::kAllReplicas);
    }
  }
  // a step that a check ends is not counted
  iterations().update(counter_rule(), after(Array(std::int64_t{1}), learning_rate), learning_rate);
}

// Hashed variables are left out: their shards hold, and so move, only the rows that are in use.
void Optimizer::warn_of_whole_tables(const VariableGradient& gradient) const {
  const VariableSpec& spec = gradient.variable.spec();
  if (!gradient.is_sparse() || !is_table_rule(rule_.kind) || spec.hashed ||
      spec.rows() <= kLargeTableRows || !warned_->insert(spec.name).second)
    return;
  log_warning(name_, ": each step goes through all ", spec.rows(), " rows of \"", spec.name,
              "\", since the rule ", rule_name(rule_),
              " changes rows without a gradient too; a row rule, such as LazyAdam's or Adagrad's, "
              "touches the rows of the batch alone");
}

}  // namespace cairn::nn
