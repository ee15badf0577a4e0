// StepFunctions: what a compiled model records for a step of training, of evaluation and of
// prediction.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "model/compile.h"
#include "model/metric_sums.h"

namespace cairn {

// A model's outputs for the features of a batch: each [b] or [b, ...].
using Network = std::function<Outputs(const Features&)>;

//   Thread  one.
class StepFunctions {
 public:
  StepFunctions(Network network, CompileOptions options);

  // How often a step's function runs for one batch, each time for its part: replicas in sync, or
  // members of a round.
  struct Shares {
    std::int64_t count = 1;
    bool are_replicas = true;  // they can all-reduce
  };
  // By what the losses of examples are multiplied.
  struct Weighing {
    std::string column = {};                          // empty: compile() says
    std::map<std::int64_t, float> class_weight = {};  // of the examples of each class
  };
  // One step for each of `steps` batches. Outputs: the loss that was minimised (of the last batch,
  // this share's part), then the summaries of metrics(), added up over the steps.
  Outputs train(const Iterator& input, std::int64_t steps, const Shares& shares,
                const Weighing& weighing) const;
  // The summaries of one batch. `weights`: the column of its examples' weights; empty: compile()
  // says.
  Outputs test(const Iterator& input, const std::string& weights) const;
  // The network's outputs, without what is only for training.
  Outputs predict(const Features& features) const;

  // "loss", then "NAME_loss" of each of several outputs, then the metrics: those of an output that
  // has a name are "NAME_METRIC".
  const std::vector<NamedMetric>& metrics() const { return metrics_; }
  // The same, then those of evaluation alone: what test() gives the summaries of.
  const std::vector<NamedMetric>& test_metrics() const { return test_metrics_; }
  const nn::Optimizer& optimizer() const { return *options_.optimizer.get(); }
  nn::Optimizer& optimizer() { return *options_.optimizer.get(); }
  const CompileOptions& options() const { return options_; }

 private:
  struct Judged {
    std::string name;  // empty: the only output
    OutputOptions options;
  };
  // The losses of one batch by example, and the examples' weights.
  struct Losses {
    Array total;             // float32 [b], weighted
    std::vector<Array> own;  // of each of several outputs, weighted by example
    Array weights;           // of examples; undefined: all are 1
  };
  Outputs named(Outputs outputs) const;
  void verify_options() const;
  // Undefined: all examples weigh 1.
  Array weights_of(const Outputs& outputs, const Batch& batch, const Weighing& weighing) const;
  Array by_class(const Outputs& outputs, const Batch& batch,
                 const std::map<std::int64_t, float>& class_weight) const;
  Losses losses_of(const Outputs& outputs, const Batch& batch, const Weighing& weighing) const;
  Array share_of_loss(const Array& total, const Shares& shares) const;
  std::vector<Array> summaries(const Outputs& outputs, const Batch& batch, const Losses& losses,
                               const Array& added) const;
  void add_summaries(std::vector<Array>& all, const std::vector<MetricChoice>& metrics,
                     const Judged& of, const Outputs& outputs, const Batch& batch,
                     const Array& weights) const;

  Network network_;
  CompileOptions options_;
  std::vector<Judged> judged_;
  std::vector<NamedMetric> metrics_, test_metrics_;
};

}  // namespace cairn
