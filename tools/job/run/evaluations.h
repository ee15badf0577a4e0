// Evaluations: the job's model evaluated while it trains, on data that it is not trained on. Each
// is a run per batch of that data, scheduled at once and collected when all of them have ended, so
// that training on a cluster goes on beside it.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/lines_read.h"
#include "model/monitor.h"
#include "model/steps/step_runner.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/run/evaluator.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {

// Thread: one, that of the runner's user.
class Evaluations {
 public:
  using Metrics = MetricResults;

  // All references outlive it. `evaluated`: with the job's features; empty: there is none.
  //   Errors  InvalidArgument: the data holds no example; make_judge()'s; those of the files.
  Evaluations(const Job& job, const FittedFeatures& features, StepRunner& runner,
              const JobNetwork& network, const std::optional<EvaluationData>& evaluated);

  bool have_data() const { return batches_ > 0; }
  bool under_way() const { return !scheduled_.empty(); }
  // Evaluates at the first multiple of `every` above `step`, and so on; 0: never by steps.
  void begin(std::int64_t step, std::int64_t every);
  // An earlier run, with which this one goes on, has evaluated the model up to this step.
  void go_on_behind(std::int64_t step) { newest_step_ = step; }
  // Schedules one if `step`, the last that was scheduled, has reached the next multiple.
  void schedule_if_due(std::int64_t step);
  // The same if the job wants evaluations by time and one is due.
  void schedule_if_time(std::int64_t step);
  // If there is data, has closures evaluate the model as they find it, to be reported as of `step`.
  void schedule(std::int64_t step);
  // Computes the evaluations that have ended, oldest first; `say` gets a line for each. If `wait`
  // is set, it waits a little for the first that has not ended.
  //   Errors  the run's.
  template <typename Say>
  void collect(bool wait, Say say) {
    while (std::optional<std::string> line = next_ended(wait)) say(*line);
  }
  // Those under way are forgotten; cancelling their closures is the caller's.
  void abandon() { scheduled_.clear(); }

  const Metrics& newest() const { return newest_; }          // of the last one that was collected
  std::int64_t newest_step() const { return newest_step_; }  // and of which step that is
  // That an earlier evaluation found the model better than the newest one does, by what early
  // stopping watches; empty: none did.
  std::string worse_than_best() const;
  const LinesRead& lines() const { return lines_; }  // events of reading the data
  const std::string& name() const { return name_; }  // the data's; empty: there is none

 private:
  struct Scheduled {
    std::vector<StepResult> parts;
    std::int64_t step = 0;
  };
  void make_function(const JobNetwork& network);
  std::optional<std::string> next_ended(bool wait);
  std::string finish(const Scheduled& evaluation);
  std::string not_numbers();

  const Job& job_;
  StepRunner& runner_;
  std::unique_ptr<Evaluator> evaluator_;
  Function function_;
  StepRunner::Data data_;
  std::string name_;
  std::int64_t batches_ = 0;  // of the data; 0: there is none
  std::int64_t every_ = 0, next_ = 0;
  TimePoint last_at_{};
  std::deque<Scheduled> scheduled_;
  // The best so far by the metric that early stopping watches, or would; empty: that one need not
  // get better in one direction.
  std::optional<Monitor> best_;
  std::optional<std::int64_t> best_step_;
  Metrics newest_;
  std::int64_t newest_step_ = 0;
  bool not_numbers_told_ = false;
  LinesRead lines_;
};

}  // namespace cairn::tools
