// Training throughput of a model: on a cluster by transport, depth and steps of a closure, and in one process.
#pragma once
#include <functional>
#include <string>

#include "bench/measure.h"
#include "bench/options.h"
#include "core/array.h"
#include "data/dataset.h"
#include "nn/optimizer.h"

namespace cairn::bench {

struct TrainedModel {
  std::string bench;                                                // "wide-deep"
  std::string variant;                                              // of its configuration; "": none
  std::int64_t batch = 0;
  std::function<Dataset()> batches;                                 // without end
  std::function<Array(const Features& features, const Array& label)> loss;
  nn::AdagradOptions optimizer;
};

// Each of `options`' transports, depths and steps, with `make` called for each: a model belongs to one strategy.
void bench_training(const Options& options, Report& report, const std::function<TrainedModel()>& make);

}  // namespace cairn::bench
