// Metrics of models that predict numbers: [b] or [b, 1] in any mixture, or [b, d], of which each
// example's mean counts. The conventions of nn/metrics/metrics.h hold here.
#pragma once
#include <memory>
#include <string>

#include "nn/metrics/metrics.h"

namespace cairn::nn {

class MeanSquaredError final : public MeanMetric {
 public:
  explicit MeanSquaredError(const std::string& name = "mean_squared_error");
};

class MeanAbsoluteError final : public MeanMetric {
 public:
  explicit MeanAbsoluteError(const std::string& name = "mean_absolute_error");
};

// The root of the mean over all examples.
class RootMeanSquaredError final : public MeanMetric {
 public:
  explicit RootMeanSquaredError(const std::string& name = "root_mean_squared_error");
  double result() const override;
  std::unique_ptr<Metric> clone() const override;
};

}  // namespace cairn::nn
