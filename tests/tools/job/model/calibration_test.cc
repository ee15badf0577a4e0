// Calibrations beside the figures of scikit-learn 1.9: sklearn.calibration._sigmoid_calibration of
// the logits, and sklearn.isotonic.IsotonicRegression(out_of_bounds="clip").
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "tools/job/model/isotonic.h"
#include "tools/job/model/platt_scaling.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const CalibrationSample kFew = {
    .probabilities = {0.05f, 0.1f, 0.1f, 0.2f, 0.3f, 0.35f, 0.4f, 0.5f, 0.6f, 0.7f, 0.7f, 0.9f},
    .labels = {0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1}};
const std::vector<float> kWeights = {1, 2, 1, 1, 3, 1, 2, 1, 1, 0.5f, 1, 2};

CalibrationSample weighted() {
  CalibrationSample sample = kFew;
  sample.weights = kWeights;
  return sample;
}

// 2000 examples whose true probability is the square of the predicted one.
CalibrationSample many() {
  CalibrationSample sample;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double u = static_cast<double>(i * 2654435761 % (std::uint64_t{1} << 32)) / 0x1p32;
    const double v = static_cast<double>((i + 1) * 40503 * 7919 % 65536) / 65536;
    const float p = 0.02f + 0.9f * static_cast<float>(u);
    sample.probabilities.push_back(p);
    sample.labels.push_back(v < static_cast<double>(p) * p ? 1.0f : 0.0f);
  }
  return sample;
}

template <typename Fitted>
std::vector<float> values(const Fitted& fitted, const std::vector<float>& probabilities) {
  const Tensor given =
      Tensor::of<float>({static_cast<std::int64_t>(probabilities.size())}, probabilities);
  const Tensor made = calibrated(fitted, given).eval();
  return {made.values<float>().begin(), made.values<float>().end()};
}

void expect_near(const std::vector<float>& got, const std::vector<double>& wanted, double within) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], within) << i;
}

template <typename F>
std::string refusal(F fit) {
  try {
    fit();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// ---- Platt scaling ----

TEST(PlattScalingTest, HasTheParametersOfScikitLearn) {
  const PlattScaling few = fit_platt(kFew);
  EXPECT_NEAR(few.slope, 0.5761492, 1e-6);
  EXPECT_NEAR(few.intercept, 0.3038660, 1e-6);
  const PlattScaling more = fit_platt(many());
  EXPECT_NEAR(more.slope, 1.3069318, 1e-5);
  EXPECT_NEAR(more.intercept, -1.2096768, 1e-5);
}

TEST(PlattScalingTest, CountsExamplesByTheirWeights) {
  const PlattScaling fitted = fit_platt(weighted());
  EXPECT_NEAR(fitted.slope, 0.7208390, 1e-6);
  EXPECT_NEAR(fitted.intercept, -0.1002663, 1e-6);
}

// The minimum as a simplex search finds it (scipy.optimize.minimize).
TEST(PlattScalingTest, CountsALabelBetweenTheClassesAsMuchOfEach) {
  CalibrationSample sample = weighted();
  for (float& label : sample.labels) label = 0.1f + 0.8f * label;
  const PlattScaling fitted = fit_platt(sample);
  EXPECT_NEAR(fitted.slope, 0.5340099, 1e-5);
  EXPECT_NEAR(fitted.intercept, -0.0772108, 1e-5);
}

// Without its smoothed targets the slope would have no bound.
TEST(PlattScalingTest, StaysFiniteWhereTheClassesAreApart) {
  const auto sigmoid = [](double z) { return static_cast<float>(1 / (1 + std::exp(-z))); };
  const PlattScaling fitted =
      fit_platt({{sigmoid(-2), sigmoid(-1), sigmoid(1), sigmoid(2)}, {0, 0, 1, 1}, {}});
  EXPECT_NEAR(fitted.slope, 0.6739964, 1e-5);
  EXPECT_NEAR(fitted.intercept, 0, 1e-6);
}

// 7 positive examples of 10 at one prediction and 2 of 10 at the other: two points, two parameters.
TEST(PlattScalingTest, GoesThroughTheSmoothedSharesOfTwoPredictions) {
  CalibrationSample sample;
  for (int i = 0; i < 20; ++i) {
    sample.probabilities.push_back(i < 10 ? 0.9f : 0.4f);
    sample.labels.push_back(i < 7 || i >= 18 ? 1.0f : 0.0f);
  }
  const double high = 10.0 / 11, low = 1.0 / 13;  // of 9 positive and 11 negative examples
  expect_near(values(fit_platt(sample), {0.9f, 0.4f}),
              {0.7 * high + 0.3 * low, 0.2 * high + 0.8 * low}, 1e-6);
}

TEST(PlattScalingTest, HasANegativeSlopeWhereTheModelRanksTheWrongWayRound) {
  CalibrationSample sample = kFew;
  for (float& label : sample.labels) label = 1 - label;
  EXPECT_NEAR(fit_platt(sample).slope, -0.5761492, 1e-6);
}

TEST(PlattScalingTest, TakesCertainPredictionsToFiniteLogits) {
  CalibrationSample sample = kFew;
  sample.probabilities.front() = 0;
  sample.probabilities.back() = 1;
  const PlattScaling fitted = fit_platt(sample);
  EXPECT_TRUE(std::isfinite(fitted.slope) && std::isfinite(fitted.intercept));
  const std::vector<float> all = values(fitted, {0, 1e-30f, 0.5f, 1});
  EXPECT_EQ(all[0], all[1]);
  EXPECT_LT(all[1], all[2]);
  EXPECT_LT(all[2], all[3]);
  EXPECT_LE(all[3], 1);
}

TEST(PlattScalingTest, LeavesProbabilitiesAloneWithSlopeOne) {
  expect_near(values(PlattScaling{}, {1e-6f, 0.1f, 0.5f, 0.999f}), {1e-6, 0.1, 0.5, 0.999}, 1e-6);
}

// ---- isotonic regression ----

TEST(IsotonicTest, HasThePointsOfScikitLearn) {
  const IsotonicPoints fitted = fit_isotonic(kFew);
  EXPECT_THAT(fitted.predictions, ElementsAre(0.05f, 0.1f, 0.3f, 0.35f, 0.6f, 0.7f, 0.9f));
  EXPECT_THAT(fitted.probabilities, ElementsAre(0, 0.25f, 0.25f, 0.5f, 0.5f, 1, 1));
  expect_near(values(fitted, {0, 0.05f, 0.07f, 0.1f, 0.15f, 0.25f, 0.33f, 0.38f, 0.45f, 0.55f,
                              0.65f, 0.8f, 0.9f, 1}),
              {0, 0, 0.1, 0.25, 0.25, 0.25, 0.4, 0.5, 0.5, 0.5, 0.75, 1, 1, 1}, 1e-6);
}

TEST(IsotonicTest, CountsExamplesByTheirWeights) {
  expect_near(values(fit_isotonic(weighted()), {0, 0.05f, 0.07f, 0.1f, 0.15f, 0.25f, 0.33f, 0.38f,
                                                0.45f, 0.55f, 0.65f, 0.8f, 0.9f, 1}),
              {0, 0, 0.0571429, 0.1428571, 0.1428571, 0.1428571, 0.2571429, 0.3333333, 0.4166667,
               0.5, 0.75, 1, 1, 1},
              1e-6);
  CalibrationSample sample = kFew;  // an example without weight is none
  sample.weights.assign(sample.labels.size(), 1);
  sample.probabilities.push_back(0.01f);
  sample.labels.push_back(1);
  sample.weights.push_back(0);
  EXPECT_EQ(fit_isotonic(sample).predictions, fit_isotonic(kFew).predictions);
}

TEST(IsotonicTest, LooksManyPointsUp) {
  const IsotonicPoints fitted = fit_isotonic(many());
  EXPECT_EQ(fitted.predictions.size(), 72u);
  expect_near(values(fitted, {0, 0.1f, 0.25f, 0.4f, 0.5f, 0.6f, 0.75f, 0.9f, 1}),
              {0, 0.010256410, 0.057971014, 0.144927536, 0.267326733, 0.358229257, 0.5625,
               0.827586207, 0.861111111},
              1e-5);
  // at the points themselves it is what they say, to the bit
  EXPECT_EQ(values(fitted, fitted.predictions), fitted.probabilities);
}

// A rising line that no pool shortens has as many points as examples.
TEST(IsotonicTest, KeepsABoundedNumberOfPointsWhereTheyMatterMost) {
  CalibrationSample sample;
  for (int i = 0; i < 20000; ++i) {
    const float p = static_cast<float>(i) / 20000;
    sample.probabilities.push_back(p);
    sample.labels.push_back(p < 0.99f ? 0.001f * p : 0.001f + 50 * (p - 0.99f));
  }
  const IsotonicPoints fitted = fit_isotonic(sample);
  EXPECT_LE(fitted.predictions.size(), kIsotonicPointsMax);
  EXPECT_GT(fitted.predictions.size(), kIsotonicPointsMax / 2);
  EXPECT_TRUE(std::ranges::is_sorted(fitted.predictions));
  EXPECT_TRUE(std::ranges::is_sorted(fitted.probabilities));
  expect_near(values(fitted, {0.5f, 0.99f, 0.995f, 0.9999f}), {0.0005, 0.001, 0.251, 0.496}, 2e-3);
}

TEST(IsotonicTest, NeverFalls) {
  const IsotonicPoints fitted = fit_isotonic(many());
  std::vector<float> all;
  for (int i = 0; i <= 10000; ++i) all.push_back(static_cast<float>(i) / 10000);
  EXPECT_TRUE(std::ranges::is_sorted(values(fitted, all)));
}

// Full rows of the table that it is looked up in, and one point more or less.
TEST(IsotonicTest, IsLookedUpInTablesOfAnySize) {
  for (const std::size_t size : {1, 2, 31, 32, 33, 64, 1023, 1024}) {
    IsotonicPoints points;
    for (std::size_t i = 0; i < size; ++i) {
      points.predictions.push_back(static_cast<float>(i + 1) / 1026);
      points.probabilities.push_back(static_cast<float>(i) / 1024);
    }
    EXPECT_EQ(values(points, points.predictions), points.probabilities) << size;
    EXPECT_EQ(values(points, {0, 1}),
              (std::vector{points.probabilities.front(), points.probabilities.back()}));
  }
}

// ---- refusals ----

TEST(CalibrationSampleTest, RefusesWhatNothingCanBeLearntFrom) {
  const auto both = [](const CalibrationSample& sample) {
    const std::string platt = refusal([&] { fit_platt(sample); });
    EXPECT_EQ(platt, refusal([&] { fit_isotonic(sample); }));
    return platt;
  };
  EXPECT_THAT(both({{0.1f, 0.2f}, {0, 0}, {}}), HasSubstr("no example is positive"));
  EXPECT_THAT(both({{0.1f, 0.2f}, {1, 1}, {}}), HasSubstr("no example is negative"));
  EXPECT_THAT(both({{0.1f, 0.2f}, {0, 1}, {1, 0}}), HasSubstr("no example is positive"));
  EXPECT_THAT(both({}), HasSubstr("no example"));
  EXPECT_THAT(both({{0.25f, 0.25f}, {0, 1}, {}}), HasSubstr("predicts 0.25 for every example"));
  EXPECT_THAT(both({{0.25f, 0.25f, 0.5f}, {0, 1, 1}, {1, 1, 0}}),
              HasSubstr("predicts 0.25 for every example"));
  EXPECT_THAT(both({{0.1f, kNan}, {0, 1}, {}}), HasSubstr("no probability"));
  EXPECT_THAT(both({{0.1f, 0.2f}, {0, 2}, {}}), HasSubstr("a label is 2"));
  EXPECT_THAT(both({{0.1f, 0.2f}, {0, 1}, {1, -1}}), HasSubstr("an example is -1"));
}

}  // namespace
}  // namespace cairn::tools
