// Learning rates that change with the number of steps taken. The formulas are
// tf.keras.optimizers.schedules' own; they are evaluated in the step's graph, in float32, from the
// optimizer's `iterations`, and the value travels with the push.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  // `step` a float32 scalar, 0 at the first step -> a float32 scalar.
  virtual Array operator()(const Array& step) const = 0;
};

// A number, or a schedule.
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

  const LearningRateSchedule* schedule() const { return schedule_.get(); }  // nullptr: a number
  float value() const { return value_; }

 private:
  float value_ = 0;
  std::shared_ptr<const LearningRateSchedule> schedule_;
};

// initial · rate ^ (step / decay_steps); staircase: the exponent's whole part.
struct ExponentialDecayOptions {
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

// values[0] up to and including step boundaries[0], then values[1], ...; one value more than
// boundaries, which ascend.
struct PiecewiseConstantDecayOptions {
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

// (initial - end) · (1 - step / decay_steps) ^ power + end, and `end` from decay_steps on; cycle:
// the ramp starts again over 2, 3, ... times decay_steps.
struct PolynomialDecayOptions {
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
  float end_learning_rate = 1e-4f;
  float power = 1;
  bool cycle = false;
};
class PolynomialDecay final : public LearningRateSchedule {
 public:
  explicit PolynomialDecay(PolynomialDecayOptions options);
  Array operator()(const Array& step) const override;

 private:
  PolynomialDecayOptions options_;
};

// initial / (1 + rate · step / decay_steps); staircase: the quotient's whole part.
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

// Half a cosine from initial down to alpha · initial over decay_steps. With a warm-up: first a line
// from initial to warmup_target over warmup_steps, then the cosine from warmup_target.
//   Source  Loshchilov, Hutter, "SGDR", ICLR 2017.
struct CosineDecayOptions {
  float initial_learning_rate = 0;
  std::int64_t decay_steps = 0;
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
// first_decay_steps, each next one t_mul times as long and beginning m_mul times as high. t_mul at
// least 1.
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
