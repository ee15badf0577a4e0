// FitLoop: one Model::fit() from its first step to its last.
//   Thread  one.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "model/model.h"
#include "model/step_functions.h"
#include "model/step_runner.h"
#include "model/training_place.h"

namespace cairn {

class FitLoop final : public TrainingRun {
 public:
  // The columns that are the examples' weights, of the training and of the validation data; empty:
  // compile() says.
  struct Weights {
    std::string training, validation;
  };
  // `data` is one epoch, or has no end. `dataset_fn` makes the dataset of each
  // input pipeline.
  FitLoop(Model& model, const Dataset& data, const FitOptions& options, Weights weights = {});
  FitLoop(Model& model, const DatasetFunction& dataset_fn, const FitOptions& options);
  //   Errors  those of Model::fit().
  History run();

  Model& model() override { return model_; }
  void stop_training() override { stopping_ = true; }
  bool is_stopping() const override { return stopping_; }
  std::int64_t epochs() const override { return options_.epochs; }
  std::int64_t steps_per_epoch() const override { return steps_per_epoch_; }
  bool writes_files() const override;
  std::string save(const std::string& folder, std::size_t keep_last) override;
  void resume(const std::string& checkpoint) override;

 private:
  void verify_options() const;
  void make_data();
  void train();
  void train_epoch();
  void finish_epoch();
  void schedule_up_to(std::int64_t step);
  void collect_next();
  void validate(Logs& logs);
  void say_epoch(const Logs& logs) const;
  Function& step_of(std::int64_t steps);
  // Calls `hook` of every callback.
  template <typename Hook>
  void tell(Hook hook) {
    for (const auto& callback : options_.callbacks) hook(*callback);
  }

  Model& model_;
  const Dataset dataset_;             // undefined: there is a function
  const DatasetFunction dataset_fn_;  // empty: there is a dataset
  const FitOptions options_;
  const Weights weights_;
  StepFunctions& functions_;
  StepRunner& runner_;
  StepRunner::Data data_;
  std::map<std::int64_t, Function> steps_;  // by how many steps one call takes
  MetricSums sums_;
  TrainingPlace place_;
  std::int64_t steps_per_epoch_ = 0;
  std::int64_t scheduled_ = 0;                               // of this epoch
  std::deque<std::pair<std::int64_t, StepResult>> running_;  // with the steps that each takes
  bool stopping_ = false;
  std::optional<StepRunner::Data> validation_;
  TimePoint epoch_began_{};
};

// The logs of an evaluation over `batches` batches of `data`.
Logs evaluate_over(StepRunner& runner, Function& test, const StepRunner::Data& data,
                   std::int64_t batches, const std::vector<NamedMetric>& metrics);
// How many batches a pass over the data has; `wanted`, if that is above 0.
//   Errors  InvalidArgument, naming `option`: it has no end, and nothing was wanted; it is empty.
std::int64_t batches_of(const Dataset& data, std::int64_t wanted, const char* option);

}  // namespace cairn
