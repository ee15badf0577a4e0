// Metrics by the names that users of Keras know.
//
//     std::unique_ptr<nn::Metric> metric = nn::make_metric("auc");
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/metrics/metrics.h"

namespace cairn::nn {

// "accuracy" of any classifier. The shapes choose the metric when the summary is recorded: for one
// prediction per example, a probability, BinaryAccuracy; for c > 1 with a label of class ids ([b]
// or [b, 1]), SparseCategoricalAccuracy; for c > 1 with a label of the same shape,
// CategoricalAccuracy.
//   Errors  InvalidArgument: other shapes.
class AnyAccuracy final : public MeanMetric {
 public:
  explicit AnyAccuracy(const std::string& name = "accuracy");
  MetricInput input(const Array& prediction) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<AnyAccuracy>(name()); }
};

// A new metric by one of metric_names(), an alias ("acc", "mse", the names of Keras's classes, such
// as "AUC" and "SparseCategoricalAccuracy") or the name or alias of a loss (nn/losses/loss.h),
// whose mean it is then, but for "cosine_similarity", which is 1 for equal directions. Metrics that
// look at the first k take it behind an @: "ndcg@10", "top_k_categorical_accuracy@3". Options are
// their defaults, and the metric has the name that was asked for.
//   Errors  InvalidArgument: no such metric, naming the nearest; a k that is no number above 0 or
//           that the metric does not take.
std::unique_ptr<Metric> make_metric(const std::string& name);

// Those of losses included, without aliases, in alphabetical order.
std::vector<std::string> metric_names();

}  // namespace cairn::nn
