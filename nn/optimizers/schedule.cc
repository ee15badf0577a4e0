// Schedules are recorded like models: `step` is an array whose value is not known here, so choices
// between cases are where() and not if. Counts become float32, which holds whole numbers up to 2^24
// exactly.
#include "nn/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

void check_decay_steps(const char* schedule, std::int64_t steps) {
  if (steps < 1)
    throw InvalidArgumentError(str(schedule, ": decay_steps must be at least 1, got ", steps));
}

Array number(std::int64_t value) { return Array(static_cast<float>(value)); }

// How many times decay_steps the step has come; with staircase only the whole ones count.
Array periods(const Array& step, std::int64_t decay_steps, bool staircase) {
  Array p = step / number(decay_steps);
  return staircase ? floor(p) : p;
}

// cos(pi · x) for x in [0, 1], as the sine series about the middle: below 1e-7 off.
Array cos_pi(const Array& x) {
  Array u = (Array(0.5f) - x) * Array(std::numbers::pi_v<float>);
  Array u2 = square(u);
  Array tail = Array(1.0f);
  for (int k = 6; k >= 1; --k)
    tail = Array(1.0f) - u2 * tail * Array(1.0f / static_cast<float>(2 * k * (2 * k + 1)));
  return u * tail;
}

}  // namespace

ExponentialDecay::ExponentialDecay(ExponentialDecayOptions options) : options_(options) {
  check_decay_steps("ExponentialDecay", options_.decay_steps);
  if (options_.decay_rate < 0)
    throw InvalidArgumentError(
        str("ExponentialDecay: decay_rate must be at least 0, got ", options_.decay_rate));
}
Array ExponentialDecay::operator()(const Array& step) const {
  return Array(options_.initial_learning_rate) *
         pow(Array(options_.decay_rate), periods(step, options_.decay_steps, options_.staircase));
}

PiecewiseConstantDecay::PiecewiseConstantDecay(PiecewiseConstantDecayOptions options)
    : options_(std::move(options)) {
  if (options_.values.size() != options_.boundaries.size() + 1)
    throw InvalidArgumentError(
        str("PiecewiseConstantDecay wants one value more than boundaries, got ",
            options_.values.size(), " and ", options_.boundaries.size()));
  if (!std::is_sorted(options_.boundaries.begin(), options_.boundaries.end()))
    throw InvalidArgumentError("PiecewiseConstantDecay: boundaries must ascend");
}
// From the last boundary to the first, so that the choice recorded last, and made first, is that of
// boundaries[0].
Array PiecewiseConstantDecay::operator()(const Array& step) const {
  Array rate(options_.values.back());
  for (std::size_t i = options_.boundaries.size(); i-- > 0;)
    rate = where(less_equal(step, number(options_.boundaries[i])), Array(options_.values[i]), rate);
  return rate;
}

PolynomialDecay::PolynomialDecay(PolynomialDecayOptions options) : options_(options) {
  check_decay_steps("PolynomialDecay", options_.decay_steps);
}
Array PolynomialDecay::operator()(const Array& step) const {
  Array length = number(options_.decay_steps);
  Array at = step;
  if (options_.cycle) {
    Array cycles = neg(floor(neg(step / length)));  // the quotient rounded up
    length = length * maximum(cycles, Array(1.0f));
  } else {
    at = minimum(step, length);
  }
  Array left = Array(1.0f) - at / length;
  return Array(options_.initial_learning_rate - options_.end_learning_rate) *
             pow(left, Array(options_.power)) +
         Array(options_.end_learning_rate);
}

InverseTimeDecay::InverseTimeDecay(InverseTimeDecayOptions options) : options_(options) {
  check_decay_steps("InverseTimeDecay", options_.decay_steps);
}
Array InverseTimeDecay::operator()(const Array& step) const {
  Array p = periods(step, options_.decay_steps, options_.staircase);
  return Array(options_.initial_learning_rate) / (Array(1.0f) + Array(options_.decay_rate) * p);
}

CosineDecay::CosineDecay(CosineDecayOptions options) : options_(options) {
  check_decay_steps("CosineDecay", options_.decay_steps);
  if (options_.warmup_target.has_value() && options_.warmup_steps < 1)
    throw InvalidArgumentError(str("CosineDecay: a warm-up wants warmup_steps of at least 1, got ",
                                   options_.warmup_steps));
}
// The warm-up's steps come before the decay and are not part of decay_steps.
Array CosineDecay::operator()(const Array& step) const {
  const float top = options_.warmup_target.value_or(options_.initial_learning_rate);
  Array after =
      options_.warmup_target ? maximum(step - number(options_.warmup_steps), Array(0.0f)) : step;
  Array done = minimum(after / number(options_.decay_steps), Array(1.0f));
  Array share =
      Array(0.5f * (1.0f - options_.alpha)) * (Array(1.0f) + cos_pi(done)) + Array(options_.alpha);
  Array cosine = Array(top) * share;
  if (!options_.warmup_target) return cosine;
  Array line =
      Array(options_.initial_learning_rate) +
      Array((top - options_.initial_learning_rate) / static_cast<float>(options_.warmup_steps)) *
          step;
  return where(less(step, number(options_.warmup_steps)), line, cosine);
}

CosineDecayRestarts::CosineDecayRestarts(CosineDecayRestartsOptions options) : options_(options) {
  if (options_.first_decay_steps < 1)
    throw InvalidArgumentError(
        str("CosineDecayRestarts: first_decay_steps must be at least 1, got ",
            options_.first_decay_steps));
  if (!(options_.t_mul >= 1))
    throw InvalidArgumentError(
        str("CosineDecayRestarts: t_mul must be at least 1, got ", options_.t_mul));
}
// `done` is counted in first lengths; each branch finds how many restarts there were and what share
// of the current half cosine is over.
Array CosineDecayRestarts::operator()(const Array& step) const {
  Array done = step / number(options_.first_decay_steps), restarts;
  if (options_.t_mul == 1) {
    restarts = floor(done);
    done = done - restarts;
  } else {  // after r restarts (t_mul^r - 1) / (t_mul - 1) first lengths are over
    const Array growth = Array(options_.t_mul - 1);
    restarts = floor(log(Array(1.0f) + done * growth) / Array(std::log(options_.t_mul)));
    const Array length = pow(Array(options_.t_mul), restarts);
    done = (done - (length - Array(1.0f)) / growth) / length;
  }
  const Array height = pow(Array(options_.m_mul), restarts) * Array(0.5f * (1.0f - options_.alpha));
  return Array(options_.initial_learning_rate) *
         (height * (Array(1.0f) + cos_pi(done)) + Array(options_.alpha));
}

}  // namespace cairn::nn
