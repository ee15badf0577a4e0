#include "model/callbacks.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "model/model.h"
#include "model/writers/json_number.h"

namespace cairn {

// ---- EarlyStopping ----

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitor_(options_.monitor, options_.mode, options_.min_delta,
               {options_.patience, options_.baseline}) {}

void EarlyStopping::on_train_begin(TrainingRun& run) {
  monitor_.begin(run.direction_of(monitor_.name()), "EarlyStopping");
  stopped_epoch_ = last_epoch_ = -1;
  best_weights_.clear();
}

void EarlyStopping::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  last_epoch_ = epoch;
  if (epoch < options_.start_from_epoch || !monitor_.is_due(run, logs)) return;
  const Monitor::Verdict verdict = monitor_.take(logs, epoch);
  if (verdict == Monitor::Verdict::kBetter && options_.restore_best_weights)
    best_weights_ = run.model().get_weights();
  if (verdict != Monitor::Verdict::kNoBetter || !monitor_.out_of_patience() || epoch == 0) return;
  stopped_epoch_ = epoch;
  run.stop_training();
}

void EarlyStopping::on_train_end(TrainingRun& run, const Logs&) {
  if (best_weights_.empty() || !(run.has_ended() || run.is_stopping())) return;
  run.model().set_weights(best_weights_);
  if (best_epoch() != last_epoch_)
    log_info("EarlyStopping: the weights are those of epoch ", best_epoch(), ", whose ",
             monitor_.name(), " is ", monitor_.best(), ", the best; the last epoch was ",
             last_epoch_);
}

std::optional<CallbackState> EarlyStopping::state() const {
  return CallbackState{json_text({{"best", number_json(monitor_.best())},
                                  {"wait", monitor_.in_vain()},
                                  {"stopped_epoch", stopped_epoch_},
                                  {"best_epoch", best_epoch()},
                                  {"last_epoch", last_epoch_}}),
                       best_weights_};
}

void EarlyStopping::restore_state(const CallbackState& saved) {
  const Json state = parse_json(saved.text, "the state of EarlyStopping");
  stopped_epoch_ = state.at("stopped_epoch").get<std::int64_t>();
  last_epoch_ = state.at("last_epoch").get<std::int64_t>();
  monitor_.go_on({.best = number_of(state.at("best")),
                  .best_at = state.at("best_epoch").get<std::int64_t>(),
                  .last_at = last_epoch_,
                  .in_vain = state.at("wait").get<std::int64_t>()});
  if (options_.restore_best_weights) best_weights_ = saved.tensors;
}

// ---- the learning rate ----

PlateauRule::PlateauRule(ReduceLROnPlateauOptions options)
    : options_(std::move(options)),
      monitor_(options_.monitor, options_.mode, options_.min_delta, {options_.patience}) {
  if (!(options_.factor > 0 && options_.factor < 1))
    throw InvalidArgumentError(
        str("ReduceLROnPlateau: factor must be above 0 and below 1, got ", options_.factor));
}

void PlateauRule::begin(nn::Direction direction) {
  monitor_.begin(direction, "ReduceLROnPlateau");
  cooling_ = 0;
}

bool PlateauRule::lower(double value, std::vector<double>& rates) {
  const Monitor::Verdict verdict = monitor_.take(value);
  if (verdict == Monitor::Verdict::kNoNumber) return false;
  if (cooling_ > 0 && --cooling_ > 0) {
    monitor_.wait_anew();
    return false;
  }
  if (verdict == Monitor::Verdict::kBetter || !monitor_.out_of_patience()) return false;
  bool lowered = false;
  for (double& rate : rates) {
    if (rate <= options_.min_lr) continue;
    rate = std::max(rate * options_.factor, options_.min_lr);
    lowered = true;
  }
  if (!lowered) return false;
  cooling_ = options_.cooldown;
  monitor_.wait_anew();
  return true;
}

std::string PlateauRule::state() const {
  return json_text({{"best", number_json(monitor_.best())},
                    {"wait", monitor_.in_vain()},
                    {"cooling", cooling_}});
}

void PlateauRule::restore_state(const std::string& saved) {
  const Json state = parse_json(saved, "the state of ReduceLROnPlateau");
  monitor_.go_on(
      {.best = number_of(state.at("best")), .in_vain = state.at("wait").get<std::int64_t>()});
  cooling_ = state.at("cooling").get<std::int64_t>();
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : rule_(std::move(options)) {}

void ReduceLROnPlateau::on_train_begin(TrainingRun& run) {
  rule_.begin(run.direction_of(rule_.monitor().name()));
}

void ReduceLROnPlateau::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (!rule_.monitor().is_due(run, logs)) return;
  std::vector<double> rates{static_cast<double>(run.model().learning_rate())};
  const bool lowered = rule_.lower(rule_.monitor().of(logs), rates);
  const std::string& complaint = rule_.monitor().complaint();
  if (!complaint.empty()) log_warning("fit: ", complaint);
  if (!lowered) return;
  run.model().set_learning_rate(static_cast<float>(rates.front()));
  log_info("epoch ", epoch, ": the learning rate is ", rates.front(), " from now on");
}

LearningRateScheduler::LearningRateScheduler(Schedule schedule) : schedule_(std::move(schedule)) {
  if (!schedule_) throw InvalidArgumentError("LearningRateScheduler: the schedule is empty");
}

void LearningRateScheduler::on_epoch_begin(TrainingRun& run, std::int64_t epoch) {
  const double rate = static_cast<double>(run.model().learning_rate());
  run.model().set_learning_rate(static_cast<float>(schedule_(epoch, rate)));
}

// ---- LambdaCallback ----

LambdaCallback::LambdaCallback(LambdaCallbackOptions options) : options_(std::move(options)) {
  if (bool(options_.state) != bool(options_.restore_state))
    throw InvalidArgumentError(
        "LambdaCallback: state and restore_state are of use together; one of them is empty");
}
std::optional<CallbackState> LambdaCallback::state() const {
  if (!options_.state) return std::nullopt;
  return options_.state();
}
void LambdaCallback::restore_state(const CallbackState& saved) { options_.restore_state(saved); }
void LambdaCallback::on_train_begin(TrainingRun&) {
  if (options_.on_train_begin) options_.on_train_begin();
}
void LambdaCallback::on_train_end(TrainingRun&, const Logs& logs) {
  if (options_.on_train_end) options_.on_train_end(logs);
}
void LambdaCallback::on_epoch_begin(TrainingRun&, std::int64_t epoch) {
  if (options_.on_epoch_begin) options_.on_epoch_begin(epoch);
}
void LambdaCallback::on_epoch_end(TrainingRun&, std::int64_t epoch, Logs& logs) {
  if (options_.on_epoch_end) options_.on_epoch_end(epoch, logs);
}
void LambdaCallback::on_train_batch_end(TrainingRun&, std::int64_t step, const Logs& logs) {
  if (options_.on_train_batch_end) options_.on_train_batch_end(step, logs);
}

}  // namespace cairn
