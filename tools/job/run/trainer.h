// Trainer: runs a job under its strategy: schedules its steps, evaluates and saves on the way, and
// reports.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "data/dataset/lines_read.h"
#include "model/monitor.h"
#include "model/steps/step_loop.h"
#include "model/steps/step_runner.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/run/evaluations.h"
#include "tools/job/run/noted_run.h"
#include "tools/job/run/run_output.h"
#include "tools/job/run/run_reporter.h"
#include "tools/job/spec/job.h"
#include "tools/launch/gpu_figures.h"

namespace cairn::tools {

struct TrainerOptions {
  std::string checkpoint_folder;
  std::string model_folder;  // of the trained model on disk; empty: none is wanted
  // For the same without its weights, from the first step on: with it a run can be served while it
  // trains. Empty: none is wanted.
  std::string graph_folder;
  // Where the last checkpoint goes if checkpoint_folder does not take it; empty: nowhere.
  std::string spare_folder = "";
  std::string resume;  // a checkpoint's folder; empty: start anew
  // The run that an earlier coordinator has begun, if there is one; `resume` does not count then.
  std::optional<NotedRun> goes_on = {};
  // A checkpoint's folder, whose rows a run that starts anew begins with; empty: none.
  std::string warm_start = "";
  bool single_writer = false;  // CheckpointPolicy::single_writer
  bool partial = false;   // variables that do not match it begin anew; false: they are an error
  bool new_data = false;  // datasets begin at their start, and the steps to train count from there
  // On that folder, where steps run in this process.
  std::shared_ptr<const storage::FolderLock> folder_lock = nullptr;
  // The step at which the resumed run's data began; above 0 where that run had --new-data.
  std::int64_t data_began = 0;
  // 0..1, several times a second; what it throws ends the run
  std::function<void(double)> on_progress;
  RunOutput* output = nullptr;  // where the run shows itself; never null
  // The GPUs of the run as they are now; empty: the run has none.
  std::function<std::vector<GpuSeen>()> gpus;
  // Passes how the run is doing on to its listeners; never null.
  std::shared_ptr<RunReporter> reporter = nullptr;
};

// The best model of a run that stops early, as the report has it.
struct BestModel {
  std::string checkpoint;  // empty: none was saved
  std::int64_t step = 0;   // as of which it was evaluated
  std::string monitor;     // the metric that is watched
  double value = 0;
};

struct TrainingOutcome {
  // On the test data, or on the validation data where there is no other, of the last evaluation.
  Evaluations::Metrics metrics;
  Evaluations::Metrics validation;  // on the validation data; empty: there is none
  double loss = 0;                  // of the last steps, smoothed
  double examples_per_s = 0;
  // of training, from the first step's schedule to the last step's end
  double seconds = 0;
  std::int64_t steps = 0, examples = 0;
  int replicas = 1;                           // in sync
  std::vector<CollectiveCounts> collectives;  // by replica; empty: they met in none
  int interrupted = 0;                        // the signal that ended it early
  bool stopped = false;                       // ended early by `cairn stop`
  // the error after the last step, in saving or in the last evaluation; empty: there was none
  std::string failure;
  std::string checkpoint;         // the one at the end; empty: it failed
  std::string model;              // the folder of the trained model; empty: there is none
  std::optional<BestModel> best;  // of [early_stopping]
  bool stopped_early = false;     // by it: evaluations found the model no better
  // the events of reading the test data; those of the training data are in FittedFeatures
  LinesRead test_lines;
  EngineStats stats;
  GpusOfRun gpus;

  bool ended_early() const { return stopped || interrupted != 0; }
};

// Thread: one.
class Trainer {
 public:
  // All outlive it but the options.
  Trainer(const Job& job, const FittedFeatures& features, StepRunner& runner,
          TrainerOptions options);
  // Trains, saves a checkpoint and the model, and only then evaluates a last time: what is bad in
  // the test data must not cost the model.
  //   Errors  the first that a step or an evaluation on the way raised, with the newest checkpoint;
  //           an error after the last step is reported in the outcome instead.
  TrainingOutcome run();

 private:
  void make_function();
  void make_dataset(std::int64_t batches_taken);
  void make_evaluations();
  Array loss_of(const Batch& batch) const;
  void begin();
  void train();
  StepLoop::Call begin_call();
  void take_loss(std::int64_t steps, float loss);
  void turn();
  bool out_of_patience() const { return stopping_ && stopping_->out_of_patience(); }
  std::string out_of_patience_text() const;
  // Whether training waits for evaluations, since they decide how it goes on.
  bool goes_by_evaluations() const;
  void consider(const Evaluations& evaluated);
  Json watched() const;
  void restore_watched(const Json& metadata);
  void find_best(const std::string& checkpoint);
  BestModel best_model(const std::string& checkpoint) const;
  bool lacks_evaluation(std::int64_t every) const;
  void lower_rates(const Evaluations& evaluated);
  void save_best();
  bool evaluate_last();
  void save_checkpoint();
  std::optional<ErrorParts> save_into(const CheckpointPolicy& policy);
  bool remove_older();
  void save_model();
  void save_graph();
  std::optional<float> threshold(std::int64_t step);
  void add_failure(const std::string& what);
  bool goes_back() const;  // to the best model, once the last one is saved
  void go_back_to_best();
  void evaluate_at_end();
  void look_for_interrupt();
  void report_failed_saves(const EngineStats& stats);
  [[noreturn]] void raise_with_checkpoint() const;
  void report_progress() const;
  void resume();
  void count_on_from(std::int64_t step);
  void warm_start();
  // ---- by the run's journal ----
  bool goes_on() const { return options_.goes_on && options_.goes_on->begun; }
  void go_on_by_journal();
  void note_job();
  void note_watched();
  void note_end();
  void compare_with_restored();
  void abandon_the_rest();
  void collect_evaluations();
  void show(bool at_end);
  void tell(bool at_end);
  std::string metadata() const;

  const Job& job_;
  FittedFeatures features_;
  StepRunner& runner_;
  TrainerOptions options_;
  JobNetwork network_;
  Function train_;
  StepRunner::Data data_;
  // data_began_: the step at which the first batch of the training data was taken
  std::int64_t total_steps_ = 0, data_began_ = 0, first_step_ = 0;
  StepLoop loop_;
  std::optional<RestoreStatus> restored_;  // until the variables are there to be compared
  // One for each data that the model is evaluated on, made after the training dataset; at least
  // one. The first evaluates on the way, and all do at the end. A deque, since none of them may
  // move.
  std::deque<Evaluations> evaluations_;
  std::optional<Monitor> stopping_;  // by what the first finds; empty: the run takes all its steps
  CheckpointPolicy policy_;
  std::uint64_t failed_saves_told_ = 0;
  TrainingOutcome outcome_;
  TimePoint started_{};
  RunOutput& output_;
};

}  // namespace cairn::tools
