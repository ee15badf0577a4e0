#include "tools/job/parts/learning_rates.h"

#include "core/base/error.h"
#include "tools/job/parts/watched_metrics.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {
namespace {

bool has_wide_part(const Job& job) { return job.model.kind.starts_with("wide"); }
bool has_other_part(const Job& job) { return job.model.kind != "wide"; }

ReduceLROnPlateauOptions rule_of(const JobPlateau& wanted, const std::string& monitor) {
  return {.monitor = monitor,
          .factor = wanted.factor,
          .patience = wanted.patience,
          .min_delta = wanted.min_delta,
          .cooldown = wanted.cooldown,
          .min_lr = wanted.min_lr};
}

}  // namespace

std::vector<std::string> learning_rate_names(const Job& job) {
  if (has_wide_part(job) && has_other_part(job)) return {"learning_rate", "wide_learning_rate"};
  return {"learning_rate"};
}

LearningRates::LearningRates(const Job& job,
                             std::vector<std::shared_ptr<nn::Optimizer>> optimizers) {
  std::vector<nn::LearningRate> rates;
  if (has_other_part(job)) rates.push_back(job.optimizer.rate);
  if (has_wide_part(job)) rates.push_back(job.wide_optimizer.rate);
  const std::vector<std::string> names = learning_rate_names(job);
  CAIRN_CHECK(optimizers.size() == names.size(), "one optimizer per rate");
  for (std::size_t i = 0; i < names.size(); ++i)
    parts_.push_back({names[i], std::move(optimizers[i]), rates[i]});
  const JobPlateau& plateau = job.callbacks.plateau;
  if (!plateau.given) return;
  monitor_ = watched_metric(job, plateau.monitor);
  plateau_.emplace(rule_of(plateau, monitor_));
  plateau_->begin(direction_of(job, monitor_));
  for (Part& part : parts_) part.optimizer->make_rate_adjustable();
}

// A schedule counts the optimizer's own updates, of which each step is one.
double LearningRates::rate_of(Part& part, std::int64_t step) {
  if (part.optimizer->rate_is_adjustable()) {
    if (!part.current) part.current = part.optimizer->current_learning_rate();
    return *part.current;
  }
  if (part.rate.schedule() == nullptr) return part.rate.value();
  return (*part.rate.schedule())(Array(static_cast<float>(step))).eval().item<float>();
}

LearningRates::Values LearningRates::at(std::int64_t step) {
  Values values;
  for (Part& part : parts_) values.emplace_back(part.name, rate_of(part, step));
  return values;
}

std::string LearningRates::consider(const std::vector<std::pair<std::string, double>>& metrics) {
  if (!plateau_) return "";
  std::vector<double> rates;
  for (Part& part : parts_) rates.push_back(rate_of(part, 0));
  if (!plateau_->lower(value_of(metrics, monitor_), rates)) return plateau_->monitor().complaint();
  std::string said = str(monitor_, " is no better than ", plateau_->monitor().best(), ":");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].optimizer->set_learning_rate(static_cast<float>(rates[i]));
    parts_[i].current = rates[i];
    said += str(i > 0 ? "," : "", " ", parts_[i].name, " ", static_cast<float>(rates[i]));
  }
  return said + " from now on";
}

Json LearningRates::state() const {
  if (!plateau_) return nullptr;
  return {{"monitor", monitor_}, {"rule", plateau_->state()}};
}

void LearningRates::restore_state(const Json& saved) {
  if (plateau_ && saved.is_object() && saved.value("monitor", "") == monitor_)
    plateau_->restore_state(saved.at("rule").get<std::string>());
}

}  // namespace cairn::tools
