// cairn.nn's metrics as Python has them.
#pragma once
#include <memory>
#include <utility>

#include "kept.h"
#include "nn/metrics/metrics.h"
#include "values.h"

namespace cairn::python {

class MetricObject {
 public:
  MetricObject(std::shared_ptr<nn::Metric> metric, Kept kept)
      : kept_(std::move(kept)), metric_(std::move(metric)) {}
  //   Errors  FailedPrecondition: the collector of cycles took it.
  nn::Metric& get() const { return *shared(); }
  const std::shared_ptr<nn::Metric>& shared() const {
    if (metric_ == nullptr) throw FailedPreconditionError("the metric was let go of");
    return metric_;
  }
  int traverse(visitproc visit, void* argument) const { return kept_.traverse(visit, argument); }
  void clear() {
    metric_.reset();
    kept_.clear();
    drop_references();
  }

 private:
  Kept kept_;
  std::shared_ptr<nn::Metric> metric_;  // goes first
};

// By its name, a MetricObject, or a function of prediction and label whose mean it is.
//   Errors  TypeError: something else.
std::shared_ptr<nn::Metric> metric_of(nb::handle metric, Kept& kept);

}  // namespace cairn::python
