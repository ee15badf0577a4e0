#include "tools/early_stopping.h"

#include <algorithm>

#include "core/base/error.h"
#include "model/json_number.h"
#include "tools/job_metrics.h"

namespace cairn::tools {

EarlyStopping::EarlyStopping(const Job& job)
    : stopping_(job.early_stopping),
      monitor_(stopping_.monitor.empty() ? judged_metrics(job).front() : stopping_.monitor,
               MonitorMode::kAuto, stopping_.min_delta) {
  // Without it the first metric need not be one that gets better in one direction.
  if (given()) monitor_.begin(direction_of(job, monitor_.name()), "early_stopping");
}

bool EarlyStopping::better(std::int64_t step, const Metrics& metrics) {
  complaint_.clear();
  if (step <= judged_step_) return false;
  judged_step_ = step;
  const auto found = std::ranges::find(metrics, monitor(), &Metrics::value_type::first);
  CAIRN_CHECK(found != metrics.end(), "no metric ", monitor());
  switch (monitor_.take(found->second)) {
    case Monitor::Verdict::kNoNumber: complaint_ = monitor_.complaint(); return false;
    case Monitor::Verdict::kNoBetter: ++in_vain_; return false;
    case Monitor::Verdict::kBetter: break;
  }
  in_vain_ = 0;
  best_step_ = step;
  return true;
}

std::string EarlyStopping::out_of_patience_text() const {
  return str("early stopping: ", in_vain_, " evaluations in a row found ", monitor(),
             " no better than ", best());
}

Json EarlyStopping::state() const {
  return {{"monitor", monitor()},
          {"best", number_json(best())},
          {"best_step", best_step_},
          {"judged_step", judged_step_},
          {"in_vain", in_vain_}};
}

void EarlyStopping::restore_state(const Json& saved) {
  if (saved.value("monitor", "") != monitor()) return;
  monitor_.go_on(cairn::number_of(saved.at("best")));
  best_step_ = saved.at("best_step").get<std::int64_t>();
  judged_step_ = saved.at("judged_step").get<std::int64_t>();
  in_vain_ = saved.at("in_vain").get<int>();
}

}  // namespace cairn::tools
