#include "tools/job/spec/job_defaults.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "nn/optimizers/schedule.h"

namespace cairn::tools {
namespace {

// Fewer updates leave a linear model of a small file far from where it is going (bench/defaults).
constexpr double kSteps = 2000;
// More examples than these would be a burden for memory; they are shuffled block by block.
constexpr std::int64_t kShuffled = std::int64_t{1} << 19;
// A constant rate keeps a model moving around its optimum; one that ends at 0 could learn nothing
// from new data that the run is resumed with.
constexpr float kLastShare = 0.05f;

// sums of two, and of a closure's steps, are exact whole numbers
constexpr double kStepsMax = 0x1p50;

void let_fall(JobOptimizer& optimizer, std::int64_t steps) {
  if (!optimizer.rate_is_default) return;
  nn::PolynomialDecayOptions falling{.initial_learning_rate = optimizer.learning_rate};
  falling.decay_steps = steps;
  falling.end_learning_rate = optimizer.learning_rate * kLastShare;
  optimizer.rate = nn::PolynomialDecay(falling);
}

}  // namespace

std::int64_t steps_of(const Job& job, std::int64_t examples) {
  const double batch = static_cast<double>(job.data.batch), epochs = job.data.epochs.value_or(1);
  const double steps = job.data.steps > 0
                           ? static_cast<double>(job.data.steps)
                           : std::ceil(epochs * static_cast<double>(examples) / batch);
  if (!(steps >= 1 && steps <= kStepsMax))
    throw InvalidArgumentError(str(job.name, ": ", epochs, " epochs of ", examples, " examples, ",
                                   job.data.batch, " a step, are ", steps, " steps: from 1 to ",
                                   kStepsMax, " are possible"));
  const std::int64_t unit = job.cluster.steps_per_closure;
  return (static_cast<std::int64_t>(steps) + unit - 1) / unit * unit;
}

std::string settle_defaults(Job& job, std::int64_t examples) {
  JobData& data = job.data;
  std::string settled;
  if (data.steps == 0 && !data.epochs) {
    const double all = static_cast<double>(std::max<std::int64_t>(examples, 1));
    data.epochs = std::max(1.0, std::ceil(kSteps * static_cast<double>(data.batch) / all));
    settled = str(*data.epochs, *data.epochs == 1 ? " epoch" : " epochs");
  }
  if (!data.shuffle) {
    const bool in_order = job.model.ranks() || data.service.given;
    data.shuffle = in_order ? 0 : std::min(examples, kShuffled);
    if (!in_order) settled += str(settled.empty() ? "" : ", ", "shuffled");
  }
  if (!job.callbacks.plateau.given && examples > 0) {
    const std::int64_t steps = steps_of(job, examples);
    let_fall(job.optimizer, steps);
    let_fall(job.wide_optimizer, steps);
  }
  return settled;
}

}  // namespace cairn::tools
