// MetricSums: what the steps of an epoch, or of an evaluation, have returned, added up, and what
// the metrics make of it.
//
// Summaries add up (nn/metrics/metrics.h), so that the place of a fit() within an epoch is these
// numbers and nothing else.
//   Thread  one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "model/callback.h"
#include "nn/metrics/metrics.h"

namespace cairn {

// One number of the logs: its name, the metric that makes it of a summary, and the column of its
// label; empty: the dataset's own.
struct NamedMetric {
  std::string name;
  std::shared_ptr<nn::Metric> metric;
  std::string label = {};
};

class MetricSums {
 public:
  explicit MetricSums(std::vector<NamedMetric> metrics) : metrics_(std::move(metrics)) {}

  // The summaries of one step, in the order of the metrics, from `summaries[first]` on.
  void add(const std::vector<Tensor>& summaries, std::size_t first);
  void reset() { sums_.clear(); }
  // The metrics of all that was added since the last reset(); NaN for all of them if nothing was.
  Logs logs() const;

  // The sums themselves, to be kept and put back.
  //   Errors  InvalidArgument: sums of other metrics.
  const std::vector<std::vector<double>>& sums() const { return sums_; }
  void restore(std::vector<std::vector<double>> sums);

 private:
  std::vector<NamedMetric> metrics_;
  std::vector<std::vector<double>> sums_;  // by metric; empty: nothing was added
  std::vector<Shape> shapes_;
};

}  // namespace cairn
