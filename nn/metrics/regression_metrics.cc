#include "nn/metrics/regression_metrics.h"

#include <cmath>

#include "nn/losses/losses.h"

namespace cairn::nn {

MeanSquaredError::MeanSquaredError(const std::string& name)
    : MeanMetric(name, mean_squared_error, Direction::kFalls) {}

MeanAbsoluteError::MeanAbsoluteError(const std::string& name)
    : MeanMetric(name, mean_absolute_error, Direction::kFalls) {}

RootMeanSquaredError::RootMeanSquaredError(const std::string& name)
    : MeanMetric(name, mean_squared_error, Direction::kFalls) {}

double RootMeanSquaredError::result() const { return std::sqrt(MeanMetric::result()); }

std::unique_ptr<Metric> RootMeanSquaredError::clone() const {
  return std::make_unique<RootMeanSquaredError>(name());
}

}  // namespace cairn::nn
