#include "model/fit_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "data/stage/dataset_wire.h"
#include "model/callback_states.h"
#include "model/fitted_columns.h"
#include "model/model_state.h"
#include "model/seen_labels.h"
#include "model/steps/batch_counts.h"
#include "model/steps/runner_of.h"
#include "nn/metrics/metrics.h"

namespace cairn {
namespace {

// The loss first, which is what a reader looks for.
std::string text_of(const Logs& logs) {
  std::string first, others;
  for (const auto& [name, value] : logs) {
    char number[40];
    std::snprintf(number, sizeof number, "%.4g", value);
    (name == "loss" ? first : others) += str("  ", name, " ", number);
  }
  return first + others;
}

}  // namespace

Logs evaluate_over(StepRunner& runner, Function& test, const StepRunner::Data& data,
                   std::int64_t batches, const std::vector<NamedMetric>& metrics) {
  MetricSums sums(metrics);
  StepLoop(runner, runner.steps_ahead())
      .run(batches,
           {.begin = [&](std::int64_t) -> StepLoop::Call {
              return {1, runner.schedule(test, data)};
            },
            .take = [&](std::int64_t, const std::vector<Tensor>& values) { sums.add(values, 0); }});
  return sums.logs();
}

FitLoop::FitLoop(Model& model, Input input, const FitOptions& options)
    : model_(model),
      input_(std::move(input)),
      options_(options),
      functions_(model.functions()),
      runner_(model.runner()),
      sums_(functions_.metrics()),
      steps_per_epoch_(options.steps_per_epoch) {
  verify_options();
  count_batches();
}

void FitLoop::verify_options() const {
  const auto refuse = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least)
      throw InvalidArgumentError(str("fit: ", name, " must be at least ", least, ", got ", value));
  };
  refuse("epochs", options_.epochs, 1);
  refuse("initial_epoch", options_.initial_epoch, 0);
  refuse("steps_per_epoch", options_.steps_per_epoch, 0);
  refuse("validation_freq", options_.validation_freq, 1);
  refuse("validation_steps", options_.validation_steps, 0);
  const bool of_validation = options_.validation_freq != 1 || options_.validation_steps != 0;
  if (of_validation && !options_.validation_data.defined())
    throw InvalidArgumentError(
        "fit: validation_freq and validation_steps are of validation data, and there is none: give "
        "validation_data, or of arrays validation_split");
  for (const auto& callback : options_.callbacks)
    if (callback == nullptr) throw InvalidArgumentError("fit: one of the callbacks is null");
}

void FitLoop::count_batches() {
  if (!input_.of_pipeline)
    steps_per_epoch_ = batches_of(input_.batches, options_.steps_per_epoch, "steps_per_epoch");
  if (steps_per_epoch_ < 1)
    throw InvalidArgumentError(
        "the data is made by a function of each input pipeline, so that nobody can count it: say "
        "by `steps_per_epoch` how many batches an epoch has");
  if (options_.validation_data.defined())
    validation_.batches =
        batches_to_judge(options_.validation_data, options_.validation_steps, "validation_steps");
}

// Batches that were taken before are left out where positions are not part of checkpoints. Of a
// function a step takes one for each replica, from the pipelines alike.
void FitLoop::make_data() {
  if (!input_.of_pipeline) {
    place_.features = fitted_json(feature_columns_of(input_.batches));
    place_.data = std::to_string(fingerprint(input_.batches));
  }
  const std::int64_t taken = runner_.keeps_positions() ? 0 : place_.batches;
  if (input_.of_pipeline) {
    data_ = runner_.pipelines_data([&](const InputContext& context) {
      const Dataset mine = input_.of_pipeline(context);
      if (mine.defined()) place_.features = fitted_json(feature_columns_of(mine));
      const std::int64_t of_step = context.num_replicas_in_sync / context.num_input_pipelines;
      return taken > 0 && mine.defined() ? mine.skip(taken * of_step) : mine;
    });
    return;
  }
  const DatasetFunction of_pipeline = [&](const InputContext& context) {
    Dataset all = input_.batches.repeat();
    if (taken > 0) all = all.skip(taken);
    // Members of a round take their pieces of a batch one after another.
    const std::int64_t shares = context.num_replicas_in_sync;
    return (shares > 1 ? all.deal(shares, Deal::kCut) : all).prefetch(2);
  };
  data_ = runner_.training_data(of_pipeline, Visitation::kExactlyOnce);
}

std::vector<std::string> FitLoop::log_names() const {
  std::vector<std::string> names;
  for (const NamedMetric& each : functions_.metrics()) names.push_back(each.name);
  if (options_.validation_data.defined())
    for (const NamedMetric& each : functions_.test_metrics()) names.push_back("val_" + each.name);
  if (functions_.optimizer().rate_is_adjustable()) names.emplace_back("learning_rate");
  return names;
}

bool FitLoop::writes_files() const { return writes_for_all(runner_.strategy()); }

std::string FitLoop::save(const CheckpointPolicy& policy) {
  place_.sums = sums_.sums();
  place_.callbacks = Json();
  place_.told = false;
  return runner_.save(policy, place_.to_json());
}

// The run that a journal tells of has gone on since any backup.
void FitLoop::resume(const std::string& checkpoint) {
  if (journal_.goes_on) return;
  TrainingPlace saved = TrainingPlace::of_checkpoint(checkpoint);
  place_.verify(saved, "the checkpoint " + checkpoint);
  runner_.restore(checkpoint, {.positions_of = {"train"}});
  saved.features = std::move(place_.features);
  saved.data = std::move(place_.data);
  place_ = std::move(saved);
  stopping_ = stopping_ || place_.stopping;
  backups_.resumed_from = checkpoint;
  sums_.restore(place_.sums);
  if (!runner_.keeps_positions()) make_data();
}

// Behind on_train_begin() of all, in which callbacks begin anew.
void FitLoop::restore_callbacks() {
  const std::string& checkpoint = backups_.resumed_from;
  if (checkpoint.empty() && !journal_.goes_on) return;
  std::set<const Callback*> restored =
      journal_.goes_on
          ? restore_states(place_.callbacks, journal_.folder,
                           "the journal in " + runner_.journal_folder(), options_.callbacks)
          : restore_states(place_.callbacks, folder_of(checkpoint), "the checkpoint " + checkpoint,
                           options_.callbacks);
  if (place_.told) backups_.told_of_epoch = std::move(restored);
}

// Behind the calls of all callbacks: states that some of them had already changed for this batch or
// epoch, and others not yet, would be of two moments.
void FitLoop::save_backups() {
  for (const CheckpointPolicy& policy : std::exchange(backups_.asked_for, {})) {
    const std::string& folder = policy.folder;
    place_.sums = sums_.sums();
    place_.stopping = stopping_;
    place_.told = place_.step > 0;
    place_.callbacks = save_states(options_.callbacks, folder, place_.batches,
                                   writes_files() ? StateFile::kWritten : StateFile::kNone);
    runner_.save(policy, place_.to_json());
    if (writes_files()) remove_other_state_files(folder, place_.callbacks);
  }
}

nn::Direction FitLoop::direction_of(const std::string& log) const {
  for (const NamedMetric& each : functions_.test_metrics()) {
    const bool of_validation = log == "val_" + each.name;
    if (log != each.name && !of_validation) continue;
    const Dataset& data = options_.validation_data;
    const nn::NeededLabels needed = each.metric->needed_labels();
    if (of_validation && data.defined() && needed != nn::NeededLabels::kAny) {
      const SeenLabels seen = seen_labels(data, each.label, needed, validation_.batches);
      if (!seen.have(needed))
        throw InvalidArgumentError(str(
            "a callback watches \"", log, "\", which can never be a number: of the validation ",
            "data ", seen.text(), "; watch another metric, or validate on data of both classes"));
    }
    return each.metric->direction();
  }
  return nn::Direction::kUnknown;
}

Function& FitLoop::step_of(std::int64_t steps) {
  const auto found = steps_.find(steps);
  if (found != steps_.end()) return found->second;
  const StepFunctions::Shares shares = shares_of(runner_);
  Function step = runner_.strategy().function(
      [this, steps, shares](Iterator input) {
        return functions_.train(input, steps, shares, {input_.weights, options_.class_weight});
      },
      "train");
  return steps_.emplace(steps, std::move(step)).first->second;
}

History FitLoop::run() {
  place_.epoch = options_.initial_epoch;
  for (const auto& callback : options_.callbacks)
    if (callback->adjusts_learning_rate()) model_.optimizer().make_rate_adjustable();
  if (!go_on_by_journal()) return place_.history;
  model_.build_beside(data_->element_spec(), input_.weights);
  tell([&](Callback& callback) { callback.on_train_begin(*this); });
  restore_callbacks();
  begin_noting();
  try {
    train();
  } catch (...) {
    tell([&](Callback& callback) { callback.on_train_end(*this, {}); });
    throw;
  }
  const Logs last = place_.history.epoch.empty() ? Logs() : sums_.logs();
  tell([&](Callback& callback) { callback.on_train_end(*this, last); });
  note_end();
  return place_.history;
}

void FitLoop::train() {
  // An epoch that was stopped in its middle is finished before the end, after a restart too.
  while (place_.epoch < options_.epochs && (!stopping_ || place_.step > 0)) {
    begin_epoch();
    const StepLoop::End end = train_epoch();
    if (end == StepLoop::End::kNotFinite || end == StepLoop::End::kInterrupted) {
      stopping_ = true;
      return;
    }
    note_place(true);
    finish_epoch();
  }
  ended_ = true;
  note_place(false);
}

void FitLoop::begin_epoch() {
  epoch_began_ = system_clock().now();
  if (place_.step == 0) sums_.reset();
  tell([&](Callback& callback) {
    if (!backups_.told_of_epoch.contains(&callback)) callback.on_epoch_begin(*this, place_.epoch);
  });
  backups_.told_of_epoch.clear();
  note_place(true);
}

StepLoop::End FitLoop::train_epoch() {
  StepLoop::Program program{
      .begin = [this](std::int64_t left) { return begin_call(left); },
      .take = [this](std::int64_t steps,
                     const std::vector<Tensor>& values) { take_call(steps, values); },
      .is_stopping = [this] { return stopping_; }};
  const auto takes = [](const auto& callback) { return callback->takes_bad_loss(); };
  if (std::ranges::any_of(options_.callbacks, takes))
    program.not_finite = [](const Error& error) { log_warning("fit ends: ", error.what()); };
  StepLoop loop(runner_, runner_.steps_ahead() * functions_.options().steps_per_execution);
  loop.go_on_behind(place_.step);
  return loop.run(steps_per_epoch_, program);
}

StepLoop::Call FitLoop::begin_call(std::int64_t left) {
  const std::int64_t steps = std::min(functions_.options().steps_per_execution, left);
  return {steps, runner_.schedule_step(step_of(steps), data_)};
}

void FitLoop::take_call(std::int64_t steps, const std::vector<Tensor>& values) {
  sums_.add(values, 1);
  place_.step += steps;
  place_.batches += steps;
  const bool wanted = std::ranges::any_of(
      options_.callbacks, [](const auto& callback) { return callback->wants_batch_logs(); });
  const Logs logs = wanted ? sums_.logs() : Logs();
  tell([&](Callback& callback) { callback.on_train_batch_end(*this, place_.step - 1, logs); });
  save_backups();
  note_if_time();
}

void FitLoop::validate(Logs& logs) {
  const Dataset& data = options_.validation_data;
  if (!data.defined() || (place_.epoch + 1) % options_.validation_freq != 0) return;
  // Each time from the first batch on, so that epochs are judged alike.
  if (!validation_.data)
    validation_.data = runner_.test_data(data.take(validation_.batches).repeat(), "validation");
  tell([](Callback& callback) { callback.on_test_begin(); });
  const Logs judged =
      evaluate_over(runner_, model_.state_->test_function(input_.validation_weights),
                    *validation_.data, validation_.batches, functions_.test_metrics());
  tell([&](Callback& callback) { callback.on_test_end(judged); });
  for (const auto& [name, value] : judged) logs.set("val_" + name, value);
}

void FitLoop::finish_epoch() {
  Logs logs = sums_.logs();
  validate(logs);
  if (model_.optimizer().rate_is_adjustable())
    logs.set("learning_rate", static_cast<double>(model_.learning_rate()));
  const std::int64_t epoch = place_.epoch;
  ++place_.epoch;
  place_.step = 0;
  // The place within this epoch is behind it: what a callback saves goes on with the next one.
  place_.history.add(epoch, logs);
  Logs seen = logs;
  tell([&](Callback& callback) { callback.on_epoch_end(*this, epoch, seen); });
  for (const auto& [name, value] : seen)
    if (!logs.contains(name) || logs[name] != value) place_.history.set_last(name, value);
  save_backups();
  if (options_.verbose == Verbose::kEpochs && writes_files()) say_epoch(seen);
}

void FitLoop::say_epoch(const Logs& logs) const {
  const double seconds = std::chrono::duration<double>(system_clock().now() - epoch_began_).count();
  std::printf("Epoch %lld/%lld  %lld steps  %.1f s%s\n", static_cast<long long>(place_.epoch),
              static_cast<long long>(options_.epochs), static_cast<long long>(steps_per_epoch_),
              seconds, text_of(logs).c_str());
  std::fflush(stdout);
}

}  // namespace cairn
