// EarlyStopping: whether evaluations on the way still find the model better than before.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "model/monitor.h"
#include "tools/job.h"

namespace cairn::tools {

// The best model of a run that stops early, as the report has it.
struct BestModel {
  std::string checkpoint;  // empty: none was saved
  std::int64_t step = 0;   // as of which it was judged
  std::string monitor;     // the metric that is watched
  double value = 0;
};

// The rule is that of model/monitor.h, as in Model::fit().
//   Thread  one.
class EarlyStopping {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;

  // A job that was verified.
  explicit EarlyStopping(const Job& job);
  bool given() const { return stopping_.given; }
  const std::string& monitor() const { return monitor_.name(); }

  // Takes the metrics of an evaluation of the model as of `step`; nothing where that was judged
  // before. Whether the model is better than every one before by more than min_delta. A metric that
  // is not a number does not count.
  bool better(std::int64_t step, const Metrics& metrics);
  // The warning about the metric that better() took last; empty if there is none.
  const std::string& complaint() const { return complaint_; }
  // Whether as many evaluations in a row as the job has patience for found none better.
  bool out_of_patience() const { return given() && in_vain_ >= stopping_.patience; }
  std::string out_of_patience_text() const;
  double best() const { return monitor_.best(); }
  std::int64_t best_step() const { return best_step_; }

  // state() is saved with each checkpoint; restore_state() continues from an earlier run's, and
  // ignores the state of a run that watched another metric.
  Json state() const;
  void restore_state(const Json& saved);

 private:
  JobEarlyStopping stopping_;
  Monitor monitor_;
  std::int64_t judged_step_ = -1, best_step_ = 0;
  int in_vain_ = 0;
  std::string complaint_;
};

}  // namespace cairn::tools
