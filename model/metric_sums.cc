#include "model/metric_sums.h"

#include <utility>

#include "core/base/error.h"

namespace cairn {
namespace {

// A double is the sum of three floats, so that a metric, which adds up in double, comes to the same
// bits as if it had been given the summaries one by one.
constexpr int kFloatsOfADouble = 3;

std::vector<Tensor> in_floats(const std::vector<double>& sums, const Shape& shape) {
  std::vector<double> rest = sums;
  std::vector<Tensor> parts;
  for (int part = 0; part < kFloatsOfADouble; ++part) {
    Tensor floats(DType::kFloat32, shape);
    const auto values = floats.mutable_values<float>();
    for (std::size_t i = 0; i < rest.size(); ++i) {
      values[i] = static_cast<float>(rest[i]);
      rest[i] -= static_cast<double>(values[i]);
    }
    parts.push_back(std::move(floats));
  }
  return parts;
}

}  // namespace

void MetricSums::add(const std::vector<Tensor>& summaries, std::size_t first) {
  if (sums_.empty()) sums_.resize(metrics_.size());
  if (shapes_.empty())
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      shapes_.push_back(summaries.at(first + i).shape());
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const auto values = summaries.at(first + i).values<float>();
    sums_[i].resize(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) sums_[i][k] += static_cast<double>(values[k]);
  }
}

Logs MetricSums::logs() const {
  Logs logs;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    nn::Metric& metric = *metrics_[i].metric;
    metric.reset();
    if (!sums_.empty()) {
      const Shape shape =
          shapes_.empty() ? Shape{static_cast<std::int64_t>(sums_[i].size())} : shapes_[i];
      for (const Tensor& part : in_floats(sums_[i], shape)) metric.add(part);
    }
    logs.set(metrics_[i].name, metric.result());
  }
  return logs;
}

void MetricSums::restore(std::vector<std::vector<double>> sums) {
  if (!sums.empty() && sums.size() != metrics_.size())
    throw InvalidArgumentError(str("the place in training that was saved has the sums of ",
                                   sums.size(), " metrics, and the model has ", metrics_.size(),
                                   ": compile it with the metrics that it was saved with"));
  sums_ = std::move(sums);
}

}  // namespace cairn
