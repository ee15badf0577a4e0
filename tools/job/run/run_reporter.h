// RunReporter: reports a run's progress to all listeners while it trains: its history, the status,
// files that the job names.
//   Thread  one, the Trainer's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "model/steps/step_runner.h"
#include "model/writers/run_history.h"
#include "model/writers/run_pace.h"

namespace cairn::tools {

// Receives a run's start, its steps and its evaluations. Calls may block.
//   Errors  any; RunReporter then leaves the listener out.
class RunListener {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;
  struct Step : RunHistory::Step {
    double examples_per_s = 0;  // since the step before; NaN: not known
    Metrics rates = {};         // learning rates by name; empty: no step has been taken
  };
  virtual ~RunListener() = default;
  // The run begins behind this step: 0, or that of the checkpoint from which it goes on.
  virtual void start(std::int64_t) {}
  virtual void step(const Step& step) = 0;
  // The metrics of the model as of `step` on the data of that name, "test" or "validation".
  virtual void evaluation(std::int64_t step, const std::string& data, const Metrics& metrics) = 0;
};

class RunReporter {
 public:
  // `say` gets a line about each listener that fails: a full disk must not cost the training.
  explicit RunReporter(std::function<void(const std::string&)> say) : say_(std::move(say)) {}
  // `what` names it in that line.
  void add(std::string what, std::unique_ptr<RunListener> listener) {
    listeners_.emplace_back(std::move(what), std::move(listener));
  }
  // Whether it is time for another step().
  bool due() const { return pace_.due(); }
  void start(std::int64_t step);
  void step(const RunHistory::Step& step, RunListener::Metrics rates = {});
  void evaluation(std::int64_t step, const std::string& data, const RunListener::Metrics& metrics);

 private:
  void tell(const std::function<void(RunListener&)>& one);

  std::function<void(const std::string&)> say_;
  RunPace pace_;
  ExamplesRate rate_;
  std::vector<std::pair<std::string, std::unique_ptr<RunListener>>> listeners_;
};

// The history that a run keeps in its folder.
//   Errors  RunHistory's.
std::unique_ptr<RunListener> history_listener(const std::string& run_dir);

// Keeps the object that `cairn status` gets from the run's coordinator, if there is one: the newest
// progress (latest_progress.h). `runner` outlives the listener.
std::unique_ptr<RunListener> status_listener(StepRunner& runner);

}  // namespace cairn::tools
