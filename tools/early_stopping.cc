#include "tools/early_stopping.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tools/job_objective.h"

namespace cairn::tools {

EarlyStopping::EarlyStopping(const Job& job)
    : stopping_(job.early_stopping), monitor_(job.early_stopping.monitor) {
  if (monitor_.empty()) monitor_ = judged_metrics(job).front();
  larger_is_better_ = larger_is_better(monitor_);
}

bool EarlyStopping::better(std::int64_t step, const Metrics& metrics) {
  if (step <= judged_step_) return false;
  judged_step_ = step;
  const auto found = std::ranges::find(metrics, monitor_, &Metrics::value_type::first);
  CAIRN_CHECK(found != metrics.end(), "no metric ", monitor_);
  const double value = found->second, gain = larger_is_better_ ? value - best_ : best_ - value;
  const bool is_better = !std::isnan(value) && (!any_ || gain > stopping_.min_delta);
  in_vain_ = is_better ? 0 : in_vain_ + 1;
  if (!is_better) return false;
  any_ = true;
  best_ = value;
  best_step_ = step;
  return true;
}

}  // namespace cairn::tools
