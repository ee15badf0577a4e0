#include "tools/job/run/evaluations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/parts/label_warnings.h"
#include "tools/job/parts/watched_metrics.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {
namespace {

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

}  // namespace

Evaluations::Evaluations(const Job& job, const FittedFeatures& features, StepRunner& runner,
                         const JobNetwork& network, const std::optional<EvaluationData>& evaluated)
    : job_(job), runner_(runner), evaluator_(make_judge(job, features, evaluated)) {
  make_function(network);
  const std::string watched = watched_metric(job, job.early_stopping.monitor);
  if (const nn::Direction way = direction_of(job, watched); way != nn::Direction::kUnknown)
    best_.emplace(watched, MonitorMode::kAuto).begin(way, "evaluation");
  if (!evaluated) return;
  name_ = evaluated->name;
  const std::int64_t batch = job.evaluation.batch;
  batches_ = (cardinality(evaluated->data, &lines_) + batch - 1) / batch;
  if (batches_ == 0)
    throw InvalidArgumentError(str("the ", name_, " data, of ", evaluated->key,
                                   ", holds no examples. ",
                                   passed_over_text(lines_, evaluated->key)));
  data_ = runner_.test_data(evaluator_->batches(evaluated->data).repeat(), name_);
}

void Evaluations::make_function(const JobNetwork& network) {
  function_ = runner_.strategy().function(
      [this, &network](Iterator input) { return evaluator_->summaries(network, input.get_next()); },
      "evaluate");
}

void Evaluations::begin(std::int64_t step, std::int64_t every) {
  every_ = every;
  next_ = every > 0 ? (step / every + 1) * every : 0;
  last_at_ = system_clock().now();
}

void Evaluations::schedule_if_due(std::int64_t step) {
  if (every_ == 0 || step < next_) return;
  schedule(step);
  next_ += every_;
}

void Evaluations::schedule_if_time(std::int64_t step) {
  const double every = job_.evaluation.every.seconds;
  if (every <= 0) return;
  const std::chrono::duration<double> since = system_clock().now() - last_at_;
  if (runner_.as_the_chief_says(since.count() > every)) schedule(step);
}

void Evaluations::schedule(std::int64_t step) {
  if (!have_data()) return;
  Scheduled evaluation;
  evaluation.step = step;
  last_at_ = system_clock().now();
  for (std::int64_t i = 0; i < batches_; ++i)
    evaluation.parts.push_back(runner_.schedule(function_, data_));
  scheduled_.push_back(std::move(evaluation));
}

// Summaries are added only once all of them are there: the metrics have one state, and a later
// evaluation must not find half of an earlier one in it.
std::optional<std::string> Evaluations::next_ended(bool wait) {
  while (!scheduled_.empty()) {
    const auto& parts = scheduled_.front().parts;
    const auto waiting = std::find_if(parts.begin(), parts.end(),
                                      [](const StepResult& part) { return !part.ready(); });
    if (waiting == parts.end()) {
      const Scheduled ended = std::move(scheduled_.front());
      scheduled_.pop_front();
      return finish(ended);
    }
    if (!wait || !waiting->ready_soon()) return std::nullopt;
  }
  return std::nullopt;
}

std::string Evaluations::finish(const Scheduled& evaluation) {
  evaluator_->reset();
  for (const StepResult& part : evaluation.parts) evaluator_->add(part.get_all());
  newest_ = evaluator_->result();
  newest_step_ = evaluation.step;
  std::string text = str("step ", evaluation.step, ", ", name_, " data:");
  for (const auto& [name, value] : newest_) text += str("  ", name, " ", four_digits(value));
  text += not_numbers();
  const double value = best_ ? value_of(newest_, best_->name()) : std::nan("");
  if (std::isfinite(value) && best_->take(value) == Monitor::Verdict::kBetter)
    best_step_ = evaluation.step;
  return text;
}

// Said once: the data is the same each time.
std::string Evaluations::not_numbers() {
  std::string said;
  if (std::exchange(not_numbers_told_, true)) return said;
  for (const auto& [name, value] : newest_)
    if (const std::string why = std::isnan(value) ? why_not_a_number(name, name_) : "";
        !why.empty())
      said += str("\nwarning: ", why);
  return said;
}

// A difference too small to show in four digits, as they are printed, counts as none.
std::string Evaluations::worse_than_best() const {
  if (!best_step_ || best_step_ == newest_step_) return "";
  const std::string now = four_digits(value_of(newest_, best_->name()));
  const std::string best = four_digits(best_->best());
  if (now == best) return "";
  return str("warning: the model at the end (", best_->name(), " ", now, " on the ", name_,
             " data) is worse than that of step ", *best_step_, " (", best,
             "): with [early_stopping], whose restore_best is true unless it says otherwise, a run "
             "goes back to its best model");
}

}  // namespace cairn::tools
