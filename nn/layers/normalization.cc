#include "nn/layers/normalization.h"

#include <utility>

#include "core/graph/eager.h"
#include "core/graph/ops.h"
#include "nn/base/step_members.h"
#include "nn/base/training_scope.h"

namespace cairn::nn {
namespace {

void check_epsilon(const LayerName& layer, float epsilon) {
  if (!(epsilon > 0))
    throw InvalidArgumentError(
        str("layer \"", layer.get(), "\": epsilon must be above 0, got ", epsilon));
}

// The size of the last axis.
std::int64_t channels_of(const LayerName& layer, const Array& x, int rank_min) {
  if (!x.defined() || x.rank() < rank_min || x.dtype() != DType::kFloat32 ||
      x.shape()[x.rank() - 1] == Shape::kUnknown)
    throw InvalidArgumentError(str("layer \"", layer.get(), "\" wants float32 of rank ", rank_min,
                                   " or above with the last dimension known, got ",
                                   x.defined() ? x.type().to_string() : "nothing"));
  return x.shape()[x.rank() - 1];
}

void check_built_for(const LayerName& layer, const Variable& variable, const Array& x) {
  if (variable.shape()[0] != x.shape()[x.rank() - 1])
    throw InvalidArgumentError(str("layer \"", layer.get(), "\" was built for ",
                                   variable.shape()[0], " channels, got ", x.type().to_string()));
}

Array filled(std::int64_t n, float value) {
  const std::vector<float> values(static_cast<std::size_t>(n), value);
  return Array(Tensor::of<float>(Shape{n}, values));
}

}  // namespace

LayerNormalization::LayerNormalization(LayerNormalizationOptions options)
    : options_(std::move(options)), name_(options_.name, "layer_normalization") {
  check_epsilon(name_, options_.epsilon);
}

Array LayerNormalization::operator()(const Array& x) const {
  const std::int64_t n = channels_of(name_, x, 1);
  const auto& variables = variables_.in_scope([&](VariableCreator& creator) {
    std::vector<Variable> made;
    if (options_.scale)
      made.push_back(creator.create_variable(
          {.name = name_.get() + "/gamma", .shape = {n}, .initializer = Initializer::constant(1)}));
    if (options_.center)
      made.push_back(creator.create_variable({.name = name_.get() + "/beta", .shape = {n}}));
    return made;
  });
  if (!variables.empty()) check_built_for(name_, variables[0], x);
  const Array gamma = options_.scale ? variables.front().read() : filled(n, 1);
  const Array beta = options_.center ? variables.back().read() : filled(n, 0);
  return layer_norm(x, gamma, beta, options_.epsilon);
}

BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : options_(std::move(options)), name_(options_.name, "batch_normalization") {
  check_epsilon(name_, options_.epsilon);
  if (!(options_.momentum >= 0 && options_.momentum <= 1))
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": momentum must be in [0, 1], got ", options_.momentum));
}

// If the program itself assigns to a moving average in a replica, the replicas' values are
// averaged, as in the reference.
std::vector<Variable> BatchNormalization::make(VariableCreator& creator,
                                               std::int64_t channels) const {
  std::vector<Variable> made;
  const auto add = [&](const char* part, float initial, bool trainable) {
    VariableSpec spec{.name = str(name_.get(), "/", part), .shape = {channels}};
    spec.initializer = initial == 0 ? Initializer::zeros() : Initializer::constant(initial);
    spec.trainable = trainable;
    if (!trainable) spec.aggregation = Aggregation::kMean;
    made.push_back(creator.create_variable(std::move(spec)));
  };
  if (options_.scale) add("gamma", 1, true);
  if (options_.center) add("beta", 0, true);
  add("moving_mean", 0, false);
  add("moving_variance", 1, false);
  return made;
}

Variable BatchNormalization::moving_mean() const {
  const auto& made = variables_.made(name_.get());
  return made[made.size() - 2];
}

Variable BatchNormalization::moving_variance() const { return variables_.made(name_.get()).back(); }

// A step of gradient descent on half the squared distance, which every strategy applies exactly
// once for each step: replicas in sync and members of a round have their distances summed, so that
// their number divides the rate. A value that is not finite ends the step before the update, which
// depends on the check.
void BatchNormalization::move(const Variable& moving, const Array& value, const char* what) const {
  const Array checked = check_numerics(value, str("the batch's ", what, " in ", name_.get()));
  const Array distance = sum_over_replicas(moving, moving.read() - checked);
  EagerRuntime* runtime = moving.runtime();
  const int replicas = runtime == nullptr ? 1 : runtime->gradients_here();
  const std::int64_t distances = replicas * step_members();
  const float rate = (1 - options_.momentum) / static_cast<float>(distances);
  moving.update({RuleKind::kSgd, {}}, distance, Array(rate), Variable::GradientOf::kAllReplicas);
}

Array BatchNormalization::of_batch(const Array& x, const Array& gamma, const Array& beta,
                                   const std::vector<Variable>& variables) const {
  const BatchNorm batch = batch_norm(x, gamma, beta, options_.epsilon);
  Array variance = batch.variance;
  if (x.rank() == 4) {
    const Array count =
        to_float(element_count(x)) / Array(static_cast<float>(x.shape()[x.rank() - 1]));
    variance = variance * (count / maximum(count - Array(1.0f), Array(1.0f)));
  }
  move(variables[variables.size() - 2], batch.mean, "mean");
  move(variables.back(), variance, "variance");
  return batch.y;
}

// By the moving averages it is one multiplication and one addition per element: what depends on
// the channel alone comes first.
Array BatchNormalization::operator()(const Array& x) const {
  const std::int64_t channels = channels_of(name_, x, 2);
  const auto& variables =
      variables_.in_scope([&](VariableCreator& creator) { return make(creator, channels); });
  check_built_for(name_, variables.back(), x);
  const std::size_t beta_at = options_.scale ? 1 : 0;
  const Array gamma = options_.scale ? variables[0].read() : filled(channels, 1);
  const Array beta = options_.center ? variables[beta_at].read() : filled(channels, 0);
  if (options_.scale) add_weight_loss(options_.gamma_regularizer, variables[0], gamma);
  if (options_.center) add_weight_loss(options_.beta_regularizer, variables[beta_at], beta);
  if (is_training()) return of_batch(x, gamma, beta, variables);
  const Array mean = variables[variables.size() - 2].read();
  const Array scale = gamma * rsqrt(variables.back().read() + Array(options_.epsilon));
  return x * scale + (beta - mean * scale);
}

}  // namespace cairn::nn
