// EarlyStopping: whether evaluations on the way still find the model better than before.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/job.h"

namespace cairn::tools {

// The best model of a run that stops early, as the report has it.
struct BestModel {
  std::string checkpoint;  // empty: none was saved
  std::int64_t step = 0;   // as of which it was judged
  std::string monitor;     // the metric that is watched
  double value = 0;
};

// Thread: one.
class EarlyStopping {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;

  // A job that was verified.
  explicit EarlyStopping(const Job& job);
  bool given() const { return stopping_.given; }
  const std::string& monitor() const { return monitor_; }

  // Takes the metrics of an evaluation of the model as of `step`; nothing where that was judged
  // before. Whether the model is better than every one before by more than min_delta; a metric that
  // is not a number never is.
  bool better(std::int64_t step, const Metrics& metrics);
  // Whether as many evaluations in a row as the job has patience for found none better.
  bool out_of_patience() const { return given() && in_vain_ >= stopping_.patience; }
  double best() const { return best_; }
  std::int64_t best_step() const { return best_step_; }

 private:
  JobEarlyStopping stopping_;
  std::string monitor_;
  bool larger_is_better_, any_ = false;
  double best_ = 0;
  std::int64_t judged_step_ = -1, best_step_ = 0;
  int in_vain_ = 0;
};

}  // namespace cairn::tools
