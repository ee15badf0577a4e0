// Options of Model::compile(): how the model is optimized and judged.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/graph/function.h"
#include "nn/losses/loss.h"
#include "nn/metrics/metric_names.h"
#include "nn/metrics/metrics.h"
#include "nn/optimizers/optimizer_names.h"

namespace cairn {

// An optimizer, or its name.
class OptimizerChoice {
 public:
  OptimizerChoice() = default;
  OptimizerChoice(const char* name)  // NOLINT(google-explicit-constructor)
      : optimizer_(nn::make_optimizer(name)) {}
  OptimizerChoice(const std::string& name)  // NOLINT(google-explicit-constructor)
      : optimizer_(nn::make_optimizer(name)) {}
  template <std::derived_from<nn::Optimizer> O>
  OptimizerChoice(O optimizer)  // NOLINT(google-explicit-constructor)
      : optimizer_(std::make_shared<O>(std::move(optimizer))) {}
  template <std::derived_from<nn::Optimizer> O>
  OptimizerChoice(std::shared_ptr<O> optimizer)  // NOLINT(google-explicit-constructor)
      : optimizer_(std::move(optimizer)) {
    if (optimizer_ == nullptr) throw InvalidArgumentError("compile: the optimizer is null");
  }
  const std::shared_ptr<nn::Optimizer>& get() const { return optimizer_; }

 private:
  std::shared_ptr<nn::Optimizer> optimizer_;
};

// A metric, or its name.
class MetricChoice {
 public:
  MetricChoice(const char* name)  // NOLINT(google-explicit-constructor)
      : metric_(nn::make_metric(name)) {}
  MetricChoice(const std::string& name)  // NOLINT(google-explicit-constructor)
      : metric_(nn::make_metric(name)) {}
  template <std::derived_from<nn::Metric> M>
  MetricChoice(M metric)  // NOLINT(google-explicit-constructor)
      : metric_(std::make_shared<M>(std::move(metric))) {}
  template <std::derived_from<nn::Metric> M>
  MetricChoice(std::shared_ptr<M> metric)  // NOLINT(google-explicit-constructor)
      : metric_(std::move(metric)) {}
  const std::shared_ptr<nn::Metric>& get() const { return metric_; }

 private:
  std::shared_ptr<nn::Metric> metric_;
};

// How one of several outputs is judged.
struct OutputOptions {
  nn::Loss loss = {};  // undefined: this output has no part in the loss
  float loss_weight = 1;
  std::string label = {};  // the column that is its label; empty: the dataset's own label
  std::vector<MetricChoice> metrics = {};
  std::vector<MetricChoice> evaluation_metrics = {};
};

// The divisor of a batch's loss, if several replicas in sync share the batch.
enum class LossScaling : std::uint8_t {
  // The examples of the whole batch, so that the result does not depend on how it is shared.
  kGlobalBatch,
  // Each replica's own examples, and the number of replicas: the reference's rule. Where replicas
  // have different numbers of examples, as in a last batch, each example of a smaller share counts
  // more.
  kReplicaMean,
};

struct CompileOptions {
  OptimizerChoice optimizer = {};  // default: "rmsprop", as the reference's
  nn::Loss loss = {};              // of a model of one output, against the dataset's label
  // Where the loss takes logits, those of probabilities are given what sigmoid() or softmax() makes
  // of the output (nn::MetricInput).
  std::vector<MetricChoice> metrics = {};
  // Further ones, of the validation data and of evaluate() alone: those that would slow down steps
  // of training.
  std::vector<MetricChoice> evaluation_metrics = {};
  // How each output of a model of several is judged, by the names that its network gives them.
  std::map<std::string, OutputOptions> outputs = {};
  // Replaces `loss`: returns each example's loss, float32 [b] or [b, 1], from all outputs and the
  // whole batch. Metrics are computed as without it, and need a label all the same.
  std::function<Array(const Outputs& outputs, const Batch& batch)> batch_loss = {};
  // A column with a number per example, by which its losses are multiplied, and by which metrics
  // count it. Losses are still divided by the number of examples.
  std::string sample_weight = {};
  // Steps that one call of the traced function takes: fewer and longer closures.
  std::int64_t steps_per_execution = 1;
  LossScaling loss_scaling = LossScaling::kGlobalBatch;
};

}  // namespace cairn
