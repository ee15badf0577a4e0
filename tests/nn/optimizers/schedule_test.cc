#include "nn/optimizers/schedule.h"

#include <gtest/gtest.h>

#include "core/graph/ops.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

float rate_at(const LearningRate& rate, float step) {
  return (*rate.schedule())(Array(step)).eval().item<float>();
}

TEST(PolynomialDecay, RampsToTheEndAndStaysOrCycles) {
  LearningRate ramp = PolynomialDecay(
      {.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0.1f, .power = 2});
  EXPECT_NEAR(rate_at(ramp, 0), 1, 1e-6f);
  EXPECT_NEAR(rate_at(ramp, 5), 0.9f * 0.25f + 0.1f, 1e-6f);
  EXPECT_NEAR(rate_at(ramp, 25), 0.1f, 1e-6f);
  LearningRate cycle = PolynomialDecay(
      {.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0, .cycle = true});
  EXPECT_NEAR(rate_at(cycle, 0), 1, 1e-6f);
  EXPECT_NEAR(rate_at(cycle, 10), 0, 1e-6f);
  EXPECT_NEAR(rate_at(cycle, 15), 0.25f, 1e-6f);
}

TEST(CosineDecay, WarmsUpToItsTargetFirst) {
  LearningRate rate = CosineDecay(
      {.initial_learning_rate = 0, .decay_steps = 100, .warmup_target = 0.4f, .warmup_steps = 10});
  EXPECT_NEAR(rate_at(rate, 0), 0, 1e-7f);
  EXPECT_NEAR(rate_at(rate, 5), 0.2f, 1e-7f);
  EXPECT_NEAR(rate_at(rate, 10), 0.4f, 1e-7f);
  EXPECT_NEAR(rate_at(rate, 60), 0.2f, 1e-7f);
  EXPECT_NEAR(rate_at(rate, 1000), 0, 1e-7f);
}

TEST(CosineDecay, EndsAtAlphaTimesTheTop) {
  LearningRate rate = CosineDecay({.initial_learning_rate = 2, .decay_steps = 4, .alpha = 0.25f});
  EXPECT_NEAR(rate_at(rate, 4), 0.5f, 1e-6f);
}

TEST(CosineDecayRestarts, BeginsAnewOverLongerAndLowerCosines) {
  LearningRate rate = CosineDecayRestarts({.initial_learning_rate = 1,
                                           .first_decay_steps = 4,
                                           .t_mul = 2,
                                           .m_mul = 0.5f,
                                           .alpha = 0.2f});
  EXPECT_NEAR(rate_at(rate, 0), 1, 1e-6f);
  EXPECT_NEAR(rate_at(rate, 2), 0.4f + 0.2f, 1e-6f);
  EXPECT_NEAR(rate_at(rate, 4), 0.4f + 0.2f, 1e-6f);   // half as high: (1 - alpha) / 2 above alpha
  EXPECT_NEAR(rate_at(rate, 8), 0.2f + 0.2f, 1e-6f);   // the middle of 8 steps
  EXPECT_NEAR(rate_at(rate, 12), 0.2f + 0.2f, 1e-6f);  // the third begins a quarter as high
  LearningRate even =
      CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 4, .t_mul = 1});
  for (float step : {0.0f, 4.0f, 8.0f}) EXPECT_NEAR(rate_at(even, step), 1, 1e-6f);
  EXPECT_NEAR(rate_at(even, 6), 0.5f, 1e-6f);
}

TEST(Schedule, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 0}),
               InvalidArgumentError);
  EXPECT_THROW(
      CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 1, .t_mul = 0.5f}),
      InvalidArgumentError);
  EXPECT_THROW(ExponentialDecay({.initial_learning_rate = 1, .decay_steps = 0, .decay_rate = 0.5f}),
               InvalidArgumentError);
  EXPECT_THROW(PiecewiseConstantDecay({.boundaries = {1, 2}, .values = {1, 2}}),
               InvalidArgumentError);
  EXPECT_THROW(PiecewiseConstantDecay({.boundaries = {2, 1}, .values = {1, 2, 3}}),
               InvalidArgumentError);
  EXPECT_THROW(CosineDecay({.initial_learning_rate = 1, .decay_steps = 5, .warmup_target = 2.0f}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
