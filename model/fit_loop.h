// FitLoop: one Model::fit() from its first step to its last.
//   Thread  one.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "model/model.h"
#include "model/step_functions.h"
#include "model/steps/step_loop.h"
#include "model/steps/step_runner.h"
#include "model/training_place.h"

namespace cairn {

class FitLoop final : public TrainingRun {
 public:
  // The training data: either `batches`, one epoch of them or endless, or the dataset that
  // `of_pipeline` makes for each input pipeline. The other one is undefined.
  struct Input {
    Dataset batches = {};
    DatasetFunction of_pipeline = {};
    // The columns that are the examples' weights, here and in the validation data; empty: compile()
    // says.
    std::string weights = {}, validation_weights = {};
  };
  FitLoop(Model& model, Input input, const FitOptions& options);
  //   Errors  those of Model::fit().
  History run();

  Model& model() override { return model_; }
  void stop_training() override { stopping_ = true; }
  bool is_stopping() const override { return stopping_; }
  std::int64_t epochs() const override { return options_.epochs; }
  std::int64_t steps_per_epoch() const override { return steps_per_epoch_; }
  std::vector<std::string> log_names() const override;
  std::int64_t step() const override { return place_.step; }
  bool writes_files() const override;
  bool has_ended() const override { return ended_; }
  nn::Direction direction_of(const std::string& log) const override;
  using TrainingRun::save;
  std::string save(const CheckpointPolicy& policy) override;
  void back_up(const std::string& folder, std::size_t full_every) override {
    backups_.asked_for.push_back({.folder = folder, .keep_last = 1, .full_every = full_every});
  }
  void resume(const std::string& checkpoint) override;

 private:
  void verify_options() const;
  void count_batches();
  void make_data();
  void train();
  void begin_epoch();
  StepLoop::End train_epoch();
  void finish_epoch();
  StepLoop::Call begin_call(std::int64_t left);
  void take_call(std::int64_t steps, const std::vector<Tensor>& values);
  void validate(Logs& logs);
  void restore_callbacks();
  void count_taken(std::int64_t taken);
  bool go_on_by_journal();
  void begin_noting();
  void note_place(bool told);
  void note_if_time();
  void note_end();
  void make_variables_only();
  void save_backups();
  void say_epoch(const Logs& logs) const;
  Function& step_of(std::int64_t steps);
  // Calls `hook` of every callback.
  template <typename Hook>
  void tell(Hook hook) {
    for (const auto& callback : options_.callbacks) hook(*callback);
  }

  Model& model_;
  const Input input_;
  const FitOptions options_;
  StepFunctions& functions_;
  StepRunner& runner_;
  StepRunner::Data data_;
  std::map<std::int64_t, Function> steps_;  // by how many steps one call takes
  MetricSums sums_;
  TrainingPlace place_;
  std::int64_t steps_per_epoch_ = 0;
  bool stopping_ = false, ended_ = false;
  struct Backups {
    std::vector<CheckpointPolicy> asked_for = {};
    std::string resumed_from = {};                 // empty: from nothing
    std::set<const Callback*> told_of_epoch = {};  // their states hold the beginning of this epoch
  } backups_;
  // Its place in the run's journal (model/fit_journal.cc).
  struct Journal {
    std::string name = {};    // of its note; empty: there is no journal
    std::string folder = {};  // for the tensors of callbacks
    bool goes_on = false;     // an earlier process has begun this fit()
    TimePoint due{};          // when the place is noted within an epoch
  } journal_;
  struct Validation {
    std::int64_t batches = 0;
    std::optional<StepRunner::Data> data = {};
  };
  Validation validation_;
  TimePoint epoch_began_{};
};

// The logs of an evaluation over `batches` batches of `data`.
Logs evaluate_over(StepRunner& runner, Function& test, const StepRunner::Data& data,
                   std::int64_t batches, const std::vector<NamedMetric>& metrics);

}  // namespace cairn
