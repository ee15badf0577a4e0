// cairn.nn's metrics as Python has them.
#pragma once
#include <memory>
#include <string>
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

// ---- classes of metrics ----

template <typename M>
struct MetricOf : MetricObject {
  using MetricObject::MetricObject;
  M& own() const { return static_cast<M&>(get()); }
};
template <typename M>
using MetricClass = nb::class_<MetricOf<M>, MetricObject>;

template <typename M>
MetricClass<M> metric_class(nb::module_& m, const char* name, const char* doc) {
  MetricClass<M> made(m, name, nb::type_slots(collected<MetricObject>()), doc);
  if constexpr (requires(M & one, const M& other) { one.merge(other); })
    made.def(
        "merge", [](MetricOf<M>& self, const MetricOf<M>& other) { self.own().merge(other.own()); },
        "other"_a, "As if all that was added to the other had been added here.");
  return made;
}
template <typename M, typename... A>
void make_metric(MetricOf<M>* self, A&&... arguments) {
  new (self) MetricOf<M>(std::make_shared<M>(std::forward<A>(arguments)...), Kept());
}
template <typename M>
void named_metric(nb::module_& m, const char* name, const char* default_name, const char* doc) {
  metric_class<M>(m, name, doc)
      .def(
          "__init__", [](MetricOf<M>* self, const std::string& given) { make_metric(self, given); },
          "name"_a = default_name);
}

void bind_metric_kinds(nb::module_& m);

}  // namespace cairn::python
