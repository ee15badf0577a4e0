// Watched values: their direction, values that are no number, and metrics that never are one.
#include "model/monitor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "nn/metrics/metrics.h"
#include "tests/model/small_models.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinearData;
using testing::LinearModel;
using testing::Said;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Monitor, GoesByWhatTheMetricSaysAndByTheModeBeforeThat) {
  using Verdict = Monitor::Verdict;
  Monitor rises("val_cosine_similarity", MonitorMode::kAuto);
  rises.begin(nn::Direction::kRises, "a test");
  EXPECT_EQ(rises.take(0.1), Verdict::kBetter);
  EXPECT_EQ(rises.take(0.05), Verdict::kNoBetter);
  EXPECT_EQ(rises.take(0.2), Verdict::kBetter);
  Monitor falls("val_auction", MonitorMode::kMin);
  falls.begin(nn::Direction::kUnknown, "a test");
  EXPECT_EQ(falls.take(2), Verdict::kBetter);
  EXPECT_EQ(falls.take(3), Verdict::kNoBetter);
  falls.begin(nn::Direction::kRises, "a test");  // and it has forgotten the best
  EXPECT_EQ(falls.take(3), Verdict::kBetter);
}

TEST(Monitor, AsksForAModeWhereNobodyKnows) {
  Monitor monitor("val_auction", MonitorMode::kAuto);
  try {
    monitor.begin(nn::Direction::kUnknown, "EarlyStopping");
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("EarlyStopping watches \"val_auction\""),
                                    HasSubstr("give `mode`")));
  }
}

TEST(Monitor, CountsNoNumberAsNothingAndTellsItOnce) {
  Monitor monitor("val_auc", MonitorMode::kMax);
  monitor.begin(nn::Direction::kUnknown, "a test");
  EXPECT_EQ(monitor.take(kNaN), Monitor::Verdict::kNoNumber);
  EXPECT_THAT(monitor.complaint(), HasSubstr("\"val_auc\" is not a number"));
  EXPECT_EQ(monitor.take(0.5), Monitor::Verdict::kBetter);
  EXPECT_EQ(monitor.take(kNaN), Monitor::Verdict::kNoNumber);
  EXPECT_EQ(monitor.complaint(), "");
  EXPECT_EQ(monitor.best(), 0.5);
}

TEST(Monitor, IsOutOfPatienceAfterAsManyValuesInARowThatAreNoBetter) {
  Monitor falls("val_loss", MonitorMode::kMin, 0, {.values = 2});
  falls.begin(nn::Direction::kUnknown, "a test");
  for (const double value : {3.0, 3.0, 2.0, 2.5, kNaN}) falls.take(value);
  EXPECT_FALSE(falls.out_of_patience());  // NaN does not count
  falls.take(2.0);
  EXPECT_TRUE(falls.out_of_patience());
  falls.wait_anew();
  EXPECT_FALSE(falls.out_of_patience());
  EXPECT_EQ(falls.best(), 2.0);
}

TEST(Monitor, WithoutPatienceTheFirstValueThatIsNoBetterIsTooMany) {
  Monitor falls("val_loss", MonitorMode::kMin);
  falls.begin(nn::Direction::kUnknown, "a test");
  falls.take(3);
  EXPECT_FALSE(falls.out_of_patience());
  falls.take(3);
  EXPECT_TRUE(falls.out_of_patience());
}

TEST(Monitor, WaitsOnForAValueThatIsBetterThanTheBaseline) {
  Monitor rises("val_auc", MonitorMode::kMax, 0, {.values = 3, .baseline = 0.9});
  rises.begin(nn::Direction::kUnknown, "a test");
  EXPECT_EQ(rises.take(0.7), Monitor::Verdict::kBetter);
  EXPECT_EQ(rises.take(0.8), Monitor::Verdict::kBetter);
  EXPECT_EQ(rises.take(0.8), Monitor::Verdict::kNoBetter);
  EXPECT_TRUE(rises.out_of_patience());
  EXPECT_EQ(rises.take(0.95), Monitor::Verdict::kBetter);
  EXPECT_FALSE(rises.out_of_patience());
}

TEST(Monitor, TakesTheValueOfAMomentOnce) {
  Monitor rises("auc", MonitorMode::kMax, 0, {.values = 2});
  rises.begin(nn::Direction::kUnknown, "a test");
  EXPECT_EQ(rises.take(0.6, 10), Monitor::Verdict::kBetter);
  EXPECT_EQ(rises.take(0.5, 20), Monitor::Verdict::kNoBetter);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rises.take(0.7, 20), Monitor::Verdict::kSeen);
  EXPECT_FALSE(rises.out_of_patience());
  EXPECT_EQ(rises.best_at(), 10);
}

TEST(Monitor, GoesOnWithItsMemory) {
  Monitor earlier("auc", MonitorMode::kMax, 0, {.values = 2});
  earlier.begin(nn::Direction::kUnknown, "a test");
  earlier.take(0.6, 10);
  earlier.take(0.5, 20);
  Monitor later("auc", MonitorMode::kMax, 0, {.values = 2});
  later.begin(nn::Direction::kUnknown, "a test");
  later.go_on(earlier.memory());
  EXPECT_EQ(later.take(0.55, 30), Monitor::Verdict::kNoBetter);
  EXPECT_TRUE(later.out_of_patience());
}

// ---- in a fit() ----

struct Watched {
  explicit Watched(std::vector<MetricChoice> metrics = {"mae"})
      : linear(0.01f, std::move(metrics)) {}
  // Stops with a patience of 2, unless what is watched gets better.
  std::shared_ptr<EarlyStopping> stop(const std::string& name, std::vector<double> values,
                                      MonitorMode mode = MonitorMode::kAuto) {
    auto stops = std::make_shared<EarlyStopping>(
        EarlyStoppingOptions{.monitor = name, .patience = 2, .mode = mode});
    const auto epochs = static_cast<std::int64_t>(values.size());
    linear.model.fit(data.x, data.y,
                     {.epochs = epochs,
                      .batch_size = 8,
                      .callbacks = {std::make_shared<Said>(name, std::move(values)), stops},
                      .verbose = Verbose::kSilent});
    return stops;
  }
  std::string refusal(const FitOptions& options) {
    try {
      linear.model.fit(data.x, data.y, options);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "it was taken";
  }
  OneDeviceStrategy strategy;
  Scope scope = strategy.scope();
  LinearModel linear;
  LinearData data{16};
};

Array first_column(const Array& prediction, const Array&) { return prediction; }

TEST(EarlyStopping, GoesByTheDirectionOfTheMetricAndNotByItsName) {
  {
    Watched cosine({"cosine_similarity"});
    EXPECT_EQ(cosine.stop("cosine_similarity", {.1, .2, .3, .4, .35, .3, .2})->best_epoch(), 3);
  }
  {
    Watched auction({nn::MeanMetric("auction", first_column, nn::Direction::kFalls)});
    EXPECT_EQ(auction.stop("auction", {4, 3, 2, 1, 3, 4, 5})->best_epoch(), 3);
    EXPECT_EQ(auction.stop("loss", {4, 3, 2, 1, 3, 4, 5})->best_epoch(), 3);
  }
  Watched unsaid({nn::MeanMetric("auction", first_column)});
  EXPECT_THROW(unsaid.stop("auction", {1}), InvalidArgumentError);
  EXPECT_THROW(unsaid.stop("val_auc", {1}), InvalidArgumentError);  // a callback's own name
  EXPECT_EQ(unsaid.stop("auction", {1, 2, 3, 2, 1, 0}, MonitorMode::kMax)->best_epoch(), 2);
}

TEST(EarlyStopping, DoesNotCountWhatIsNoNumber) {
  Watched on;
  const auto stops = on.stop("mae", {kNaN, kNaN, kNaN, 3, 4, kNaN, kNaN, kNaN, 4, 1});
  EXPECT_EQ(stops->best_epoch(), 3);
  EXPECT_EQ(stops->stopped_epoch(), 8);
  EXPECT_EQ(on.stop("mae", std::vector<double>(6, kNaN))->stopped_epoch(), -1);
}

TEST(LearningRate, DoesNotFallForWhatIsNoNumber) {
  Watched on;
  on.linear.model.fit(on.data.x, on.data.y,
                      {.epochs = 6,
                       .callbacks = {std::make_shared<Said>("mae", std::vector<double>(6, kNaN)),
                                     std::make_shared<ReduceLROnPlateau>(ReduceLROnPlateauOptions{
                                         .monitor = "mae", .patience = 1})},
                       .verbose = Verbose::kSilent});
  EXPECT_FLOAT_EQ(on.linear.model.learning_rate(), 0.01f);
}

TEST(EarlyStopping, RefusesAnAucOfValidationDataOfOneClassAtTheStart) {
  Watched on({"auc"});
  const auto options = [&](float other) {
    const Tensor x = on.data.x.rows(0, 4);
    const Tensor y = Tensor::of<float>({4, 1}, std::vector<float>{0, 0, 0, other});
    return FitOptions{
        .epochs = 1,
        .validation_data = Dataset::from_tensor_slices({{"x", x}, {"y", y}}, "y").batch(2),
        .callbacks = {std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "val_auc"}),
                      std::make_shared<LambdaCallback>(LambdaCallbackOptions{
                          .on_epoch_begin = [](std::int64_t) { FAIL() << "it has begun"; }})},
        .verbose = Verbose::kSilent};
  };
  EXPECT_THAT(on.refusal(options(0)), AllOf(HasSubstr("\"val_auc\", which can never be a number"),
                                            HasSubstr("the labels of these 4 examples are all 0")));
}

}  // namespace
}  // namespace cairn
