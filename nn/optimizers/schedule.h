// Learning rates that change with the number of steps taken. The formulas are those of
// tf.keras.optimizers.schedules; they are evaluated in the step's graph, in float32, from the
// optimizer's `iterations`, and the value travels with the push.
//
//     nn::SGD optimizer({.learning_rate = nn::ExponentialDecay({.initial_learning_rate = 0.1f,
//                                                               .decay_steps = 1000,
//                                                               .decay_rate = 0.96f})});
//
// A step here is one update by that optimizer, by any worker: neither an example, nor an epoch, nor
// a closure that updates nothing. initial_learning_rate is the rate at step 0; rates and steps have
// no sensible default and are required, although the structs have zeros there.
//   Errors  InvalidArgument, from each constructor: decay_steps below 1, and what is said below.
//   Thread  immutable; any.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

// A schedule of your own derives from this and records operations of core/graph/ops.h.
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  // The rate at `step`, a float32 scalar that is 0 at the first step -> a float32 scalar. Recorded
  // once per traced function, run at every step.
  virtual Array operator()(const Array& step) const = 0;
};

// A number, or a schedule. It converts from both, so that an option can be set to either, and from
// a shared schedule where one is chosen at run time. Copies share the schedule.
class LearningRate {
 public:
  LearningRate(float value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  LearningRate(double value)
      : value_(static_cast<float>(value)) {}  // NOLINT(google-explicit-constructor)
  template <std::derived_from<LearningRateSchedule> S>
  LearningRate(S schedule)
      : schedule_(std::make_shared<S>(std::move(schedule))) {
  }  // NOLINT(google-explicit-constructor)
  LearningRate(std::shared_ptr<const LearningRateSchedule> schedule)
      : schedule_(std::move(schedule)) {}  // NOLINT

  // The schedule, or nullptr for a number; value() is then the number.
  const LearningRateSchedule* schedule() const { return schedule_.get(); }
  float value() const { return value_; }

 private:
  float value_ = 0;
  std::shared_ptr<const LearningRateSchedule> schedule_;
};

// initial · rate ^ (step / decay_steps); staircase: the exponent's whole part, so that the rate
// falls every decay_steps steps.
//   Errors  a rate below 0.
struct ExponentialDecayOptions {
  // The rate has been multiplied by decay_rate once after decay_steps steps.
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
  float decay_rate = 0;
  bool staircase = false;
};
class ExponentialDecay final : public LearningRateSchedule {
 public:
  explicit ExponentialDecay(ExponentialDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  ExponentialDecayOptions options_;
};

// values[0] up to and including step boundaries[0], then values[1], and so on: one value more than
// boundaries.
//   Errors  another number of values; boundaries that do not ascend.
struct PiecewiseConstantDecayOptions {
  // Steps at which the rate changes, and the rates between them.
  std::vector<std::int64_t> boundaries;
  std::vector<float> values;
};
class PiecewiseConstantDecay final : public LearningRateSchedule {
 public:
  explicit PiecewiseConstantDecay(PiecewiseConstantDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  PiecewiseConstantDecayOptions options_;
};

// (initial - end) · (1 - step / decay_steps) ^ power + end, and `end` from decay_steps on. cycle:
// the ramp never ends, but is stretched to 2, 3, ... times decay_steps as the step passes each
// multiple.
struct PolynomialDecayOptions {
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
  float end_learning_rate = 1e-4f;
  float power = 1;
  // Whether the ramp is stretched, as said above, instead of ending.
  bool cycle = false;
};
// With power 1 the ramp is a straight line.
class PolynomialDecay final : public LearningRateSchedule {
 public:
  explicit PolynomialDecay(PolynomialDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  PolynomialDecayOptions options_;
};

// initial / (1 + rate · step / decay_steps); staircase: the quotient's whole part. With decay_steps
// = 1 this is the reference's old argument `decay`.
struct InverseTimeDecayOptions {
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
  float decay_rate = 0;
  bool staircase = false;
};
class InverseTimeDecay final : public LearningRateSchedule {
 public:
  explicit InverseTimeDecay(InverseTimeDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  InverseTimeDecayOptions options_;
};

// Half a cosine from initial down to alpha · initial over decay_steps, and that from then on. With
// a warm-up: first a line from initial to warmup_target over warmup_steps, then the cosine from
// warmup_target.
//   Errors  a warm-up of less than one step.
//   Source  Loshchilov, Hutter, "SGDR: Stochastic gradient descent with warm restarts", ICLR 2017.
struct CosineDecayOptions {
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
  // The share of the initial rate that is left at the end.
  float alpha = 0;
  std::optional<float> warmup_target = {};
  std::int64_t warmup_steps = 0;
};
class CosineDecay final : public LearningRateSchedule {
 public:
  explicit CosineDecay(CosineDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  CosineDecayOptions options_;
};

// Half cosines from initial down to alpha · initial, one after another: the first over
// first_decay_steps, each next one t_mul times as long and beginning m_mul times as high.
//   Errors  t_mul below 1.
//   Source  the same.
struct CosineDecayRestartsOptions {
  float initial_learning_rate = 0;
  std::int64_t first_decay_steps = 0;
  float t_mul = 2;
  float m_mul = 1;
  float alpha = 0;
};
class CosineDecayRestarts final : public LearningRateSchedule {
 public:
  explicit CosineDecayRestarts(CosineDecayRestartsOptions options);
  Array operator()(const Array& step) const override;

 private:
  CosineDecayRestartsOptions options_;
};

}  // namespace cairn::nn
