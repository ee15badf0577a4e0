// Trainer: runs a job on a cluster: schedules its steps, evaluates and saves on the way, and reports.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster_coordinator.h"
#include "data/lines_read.h"
#include "nn/metrics.h"
#include "tools/job.h"
#include "tools/job_model.h"
#include "tools/progress_line.h"

namespace cairn::tools {

struct TrainerOptions {
  std::string checkpoint_folder;
  std::string resume;                         // a checkpoint's folder; empty: start anew
  bool partial = false;   // variables that do not match it begin anew; false: they are an error
  bool new_data = false;  // datasets begin at their start, and the steps to train count from there
  std::function<void(double)> on_progress;    // 0..1, several times a second; what it throws ends the run
  const std::atomic<bool>* interrupted = nullptr;
};

struct TrainingOutcome {
  std::vector<std::pair<std::string, double>> metrics;  // on the test data, of the last evaluation
  double loss = 0;                // of the last steps, smoothed
  double examples_per_s = 0;
  double seconds = 0;             // of training, from the first step's schedule to the last step's end
  std::int64_t steps = 0, examples = 0;
  bool interrupted = false;
  bool stopped = false;  // interrupted by `cairn stop`
  std::string checkpoint;
  LinesRead test_lines;           // what reading the test data came across; the training data's are in FittedFeatures
  EngineStats stats;
};

// Thread: one.
class Trainer {
 public:
  Trainer(const Job& job, const FittedFeatures& features, ParameterServerStrategy& strategy, TrainerOptions options);
  // Errors: the first that a step, an evaluation or a save raised.
  TrainingOutcome run();

 private:
  struct Evaluation {
    std::vector<RemoteValue> parts;
    std::int64_t step = 0;
  };
  void make_functions();
  void make_datasets();
  void tell_progress() const;
  void resume();
  void abandon_the_rest();
  void schedule_up_to(std::int64_t step);
  void schedule_evaluation();
  void collect();
  void take_results();
  void finish_evaluation(Evaluation evaluation);
  void show(bool at_end);
  std::string metadata() const;

  const Job& job_;
  FittedFeatures features_;
  ParameterServerStrategy& strategy_;
  ClusterCoordinator coordinator_;
  TrainerOptions options_;
  JobNetwork network_;
  Function train_, evaluate_;
  PerWorkerDatasetHandle train_data_, test_data_;
  std::int64_t total_steps_ = 0, first_step_ = 0, scheduled_ = 0, done_ = 0;
  std::int64_t evaluation_every_ = 0, next_evaluation_ = 0, test_batches_ = 0;
  std::vector<std::unique_ptr<nn::Metric>> metrics_;
  std::deque<RemoteValue> running_;
  std::deque<Evaluation> evaluations_;
  TrainingOutcome outcome_;
  TimePoint started_{}, evaluated_at_{};
  ProgressLine line_;
};

}  // namespace cairn::tools
