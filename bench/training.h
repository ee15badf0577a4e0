// Training throughput of a model: on a cluster by transport, depth and steps of a closure, and in
// one process.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "bench/cluster.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "core/graph/array.h"
#include "data/dataset/dataset.h"
#include "nn/optimizers/optimizer.h"

namespace cairn::bench {

struct TrainedModel {
  std::string bench;  // "wide-deep"
  // of its configuration; "": none
  std::string variant;
  std::int64_t batch = 0;
  std::function<Dataset()> batches;  // without end
  std::function<Array(const Features& features, const Array& label)> loss;
  nn::AdagradOptions optimizer;
  // operations of the matrix products for an example, both ways
  double products = 0;
};

// Operations of dense layers of these widths for an example: two for each weight forward, four
// backward.
double products_of(std::initializer_list<std::int64_t> widths);

// A model on a cluster of its own, `steps` steps a closure.
class ClusterTraining {
 public:
  ClusterTraining(const Options& options, TrainedModel model, const ClusterChoice& choice,
                  int steps);
  ~ClusterTraining();
  double run(int closures);       // to their end; the seconds taken
  double last_loss() const;       // after run()
  const Series& series() const;   // without windows yet
  std::int64_t examples() const;  // of a closure

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Examples a second so.
Series train_on_cluster(const Options& options, Report& report, const TrainedModel& model,
                        const ClusterChoice& choice, int steps);

// Each of `options`' transports, depths and steps, with `make` called for each: a model belongs to
// one strategy. Ratios are to the same step in one process, and to what oneDNN needs for the
// products alone.
void bench_training(const Options& options, Limits& limits, Report& report,
                    const std::function<TrainedModel()>& make);

}  // namespace cairn::bench
