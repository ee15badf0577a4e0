#include "model/callbacks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/tensor/element.h"
#include "model/model.h"

namespace cairn {
namespace {

constexpr std::array kRising = {"auc", "accuracy", "precision", "recall", "ndcg", "hit", "mrr"};

bool should_rise(const std::string& name, MonitorMode mode) {
  if (mode != MonitorMode::kAuto) return mode == MonitorMode::kMax;
  return std::ranges::any_of(
      kRising, [&](const char* each) { return name.find(each) != std::string::npos; });
}

}  // namespace

// ---- Monitor ----

Monitor::Monitor(std::string name, MonitorMode mode, double min_delta)
    : name_(std::move(name)), rises_(should_rise(name_, mode)), min_delta_(min_delta) {
  if (!(min_delta >= 0))
    throw InvalidArgumentError(str("min_delta must be at least 0, got ", min_delta));
  reset();
}

void Monitor::reset() {
  const double infinity = std::numeric_limits<double>::infinity();
  best_ = rises_ ? -infinity : infinity;
}

bool Monitor::is_due(const TrainingRun& run, const Logs& logs) const {
  return logs.contains(name_) || std::ranges::count(run.log_names(), name_) == 0;
}

double Monitor::of(const Logs& logs) const {
  const auto found = logs.find(name_);
  if (found != logs.end()) return found->second;
  std::string names;
  for (const auto& [name, value] : logs) names += str(names.empty() ? "" : ", ", name);
  throw InvalidArgumentError(str("a callback monitors \"", name_, "\", and the logs have ", names));
}

bool Monitor::improves(double value) const {
  return rises_ ? value - min_delta_ > best_ : value + min_delta_ < best_;
}

// ---- EarlyStopping ----

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta) {}

void EarlyStopping::on_train_begin(TrainingRun&) {
  monitor_.reset();
  wait_ = 0;
  stopped_epoch_ = -1;
  best_weights_.clear();
}

// As the reference has it: with a baseline, an improvement that stays short of it does not end the
// wait.
void EarlyStopping::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (epoch < options_.start_from_epoch || !monitor_.is_due(run, logs)) return;
  const double value = monitor_.of(logs);
  ++wait_;
  if (monitor_.improves(value)) {
    monitor_.take(value);
    best_epoch_ = epoch;
    if (options_.restore_best_weights) best_weights_ = run.model().get_weights();
    Monitor bar(options_.monitor, options_.mode, options_.min_delta);
    bar.take(options_.baseline);
    if (std::isnan(options_.baseline) || bar.improves(value)) wait_ = 0;
    return;
  }
  if (wait_ < options_.patience || epoch == 0) return;
  stopped_epoch_ = epoch;
  run.stop_training();
}

void EarlyStopping::on_train_end(TrainingRun& run, const Logs&) {
  if (stopped_epoch_ >= 0 && !best_weights_.empty()) run.model().set_weights(best_weights_);
}

// ---- the learning rate ----

PlateauRule::PlateauRule(ReduceLROnPlateauOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta) {
  if (!(options_.factor > 0 && options_.factor < 1))
    throw InvalidArgumentError(
        str("ReduceLROnPlateau: factor must be above 0 and below 1, got ", options_.factor));
}

void PlateauRule::reset() {
  monitor_.reset();
  wait_ = cooling_ = 0;
}

bool PlateauRule::lower(double value, std::vector<double>& rates) {
  if (cooling_ > 0) {
    --cooling_;
    wait_ = 0;
  }
  if (monitor_.improves(value)) {
    monitor_.take(value);
    wait_ = 0;
    return false;
  }
  if (cooling_ > 0 || ++wait_ < options_.patience) return false;
  bool lowered = false;
  for (double& rate : rates) {
    if (rate <= options_.min_lr) continue;
    rate = std::max(rate * options_.factor, options_.min_lr);
    lowered = true;
  }
  if (!lowered) return false;
  cooling_ = options_.cooldown;
  wait_ = 0;
  return true;
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : rule_(std::move(options)) {}

void ReduceLROnPlateau::on_train_begin(TrainingRun&) { rule_.reset(); }

void ReduceLROnPlateau::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (!rule_.is_due(run, logs)) return;
  std::vector<double> rates{static_cast<double>(run.model().learning_rate())};
  if (!rule_.lower(rule_.of(logs), rates)) return;
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

// ---- CSVLogger ----

struct CSVLogger::File {
  std::ofstream out;
  std::vector<std::string> columns;  // without "epoch"; empty: no line was written
};

CSVLogger::CSVLogger(std::string path, CSVLoggerOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}
CSVLogger::~CSVLogger() = default;

void CSVLogger::on_train_begin(TrainingRun& run) {
  if (!run.writes_files()) return;
  file_ = std::make_unique<File>();
  const bool goes_on =
      options_.append && std::ifstream(path_).peek() != std::ifstream::traits_type::eof();
  if (goes_on) {
    std::string head;
    std::ifstream in(path_);
    std::getline(in, head);
    for (std::size_t from = head.find(options_.separator); from != std::string::npos;) {
      from += options_.separator.size();
      const std::size_t to = head.find(options_.separator, from);
      file_->columns.push_back(head.substr(from, to - from));
      from = to;
    }
  }
  file_->out.open(path_, goes_on ? std::ios::app : std::ios::trunc);
  if (!file_->out) throw NotFoundError(str("CSVLogger: cannot write the file ", path_));
}

void CSVLogger::on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) {
  if (!file_) return;
  if (file_->columns.empty()) {
    std::set<std::string> names;
    for (const std::string& name : run.log_names()) names.insert(name);
    for (const auto& [name, value] : logs) names.insert(name);
    file_->columns.assign(names.begin(), names.end());
    file_->out << "epoch";
    for (const std::string& name : names) file_->out << options_.separator << name;
    file_->out << '\n';
  }
  for (const auto& [name, value] : logs)
    if (std::ranges::count(file_->columns, name) == 0)
      throw FailedPreconditionError(str("CSVLogger: the file ", path_, " has no column \"", name,
                                        "\", which the logs have: write to another file"));
  file_->out.precision(std::numeric_limits<double>::max_digits10);
  file_->out << epoch;
  for (const std::string& column : file_->columns) {
    file_->out << options_.separator;
    const auto found = logs.find(column);
    if (found == logs.end())
      file_->out << "NA";
    else
      file_->out << found->second;
  }
  file_->out << std::endl;
  if (!file_->out) throw ResourceExhaustedError(str("CSVLogger: cannot write to ", path_));
}

void CSVLogger::on_train_end(TrainingRun&, const Logs&) { file_.reset(); }

// ---- LambdaCallback ----

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
