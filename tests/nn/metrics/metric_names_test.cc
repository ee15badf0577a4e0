#include "nn/metrics/metric_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/graph/ops.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_metric(const std::string& name) {
  try {
    make_metric(name);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was refused";
}

double result_by_name(const std::string& name, const Tensor& prediction, const Tensor& label) {
  std::unique_ptr<Metric> metric = make_metric(name);
  EXPECT_EQ(metric->name(), name);
  metric->add(metric->summary(prediction, label).eval());
  std::unique_ptr<Metric> again = metric->clone();
  EXPECT_EQ(again->name(), name);
  EXPECT_TRUE(std::isnan(again->result())) << name;
  again->add(again->summary(prediction, label).eval());
  EXPECT_EQ(again->result(), metric->result()) << name;
  return metric->result();
}

TEST(MetricNames, AreThoseOfKerasAndOurOwn) {
  Tensor p = floats({4}, {0.9f, 0.6f, 0.4f, 0.2f}), y = floats({4}, {1, 0, 1, 0});
  EXPECT_NEAR(result_by_name("auc", p, y), 0.75, 1e-6);
  EXPECT_NEAR(result_by_name("AUC", p, y), 0.75, 1e-6);
  EXPECT_NEAR(result_by_name("acc", p, y), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("BinaryAccuracy", p, y), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("Precision", p, y), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("recall", p, y), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("mae", p, y), 0.375, 1e-6);
  EXPECT_NEAR(result_by_name("rmse", p, y), std::sqrt(0.1925), 1e-6);
  EXPECT_NEAR(result_by_name("calibration", p, y), 1.05, 1e-6);
  EXPECT_NEAR(result_by_name("bce", p, y), result_by_name("logloss", p, y), 1e-6);
  EXPECT_NEAR(result_by_name("cosine_similarity", p.rows(0, 1), y.rows(0, 1)), 1, 1e-6);
}

// Predictions of a good and a bad model for one form of labels.
struct Judged {
  Tensor label, good, bad;
};

std::vector<Judged> judged_models() {
  constexpr std::int64_t kClasses = 7;
  Tensor good(DType::kFloat32, {2, kClasses}), bad = good.clone();
  Tensor one_hot = Tensor::zeros(DType::kFloat32, {2, kClasses});
  std::ranges::fill(good.mutable_values<float>(), 0.05f);
  std::ranges::fill(bad.mutable_values<float>(), 0.165f);
  for (const std::size_t right : {std::size_t{0}, std::size_t{9}}) {
    good.mutable_values<float>()[right] = 0.7f;
    bad.mutable_values<float>()[right] = 0.01f;
    one_hot.mutable_values<float>()[right] = 1;
  }
  return {{floats({4}, {1, 0, 1, 0}), floats({4}, {.9f, .1f, .8f, .2f}),
           floats({4}, {.2f, .9f, .4f, .6f})},
          {Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{0, 2}), good, bad},
          {one_hot, good, bad}};
}

TEST(MetricNames, SayWhichWayAModelGetsBetter) {
  for (const std::string& name : metric_names()) {
    SCOPED_TRACE(name);
    const Direction direction = make_metric(name)->direction();
    EXPECT_EQ(make_metric(name)->clone()->direction(), direction);
    EXPECT_EQ(direction == Direction::kUnknown, name == "calibration");  // it is best at 1
    int judged = 0;
    for (const Judged& each : judged_models()) {
      const auto result = [&](const Tensor& prediction) {
        const auto metric = make_metric(name == "hit_rate" ? "hit_rate@1" : name);
        metric->add(metric->summary(prediction, each.label).eval());
        return metric->result();
      };
      try {
        const double good = result(each.good), bad = result(each.bad);
        if (std::isnan(good) || good == bad) continue;
        EXPECT_EQ(good > bad, direction == Direction::kRises) << good << " and " << bad;
        ++judged;
      } catch (const Error&) {  // not for such predictions
      }
    }
    EXPECT_TRUE(judged > 0 || direction == Direction::kUnknown);
  }
}

TEST(MetricNames, OfOnesOwnMetricSayWhatTheProgramSays) {
  const auto values = [](const Array& prediction, const Array&) { return prediction; };
  EXPECT_EQ(MeanMetric("auction", values).direction(), Direction::kUnknown);
  const MeanMetric falls("auction", values, Direction::kFalls);
  EXPECT_EQ(falls.clone()->direction(), Direction::kFalls);
}

TEST(MetricNames, MakeAMetricEach) {
  const std::vector<std::string> names = metric_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_GT(names.size(), 30u);
  for (const std::string& name : names) {
    std::unique_ptr<Metric> metric = make_metric(name);
    EXPECT_EQ(metric->name(), name);
    EXPECT_TRUE(std::isnan(metric->result())) << name;
  }
}

TEST(MetricNames, TakeKBehindAnAt) {
  Tensor scores = floats({2, 3}, {3, 2, 1, 1, 2, 3}), label = ids({2}, {1, 0});
  EXPECT_NEAR(result_by_name("recall@2", scores, label), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("hit_rate@1", scores, label), 0, 1e-6);
  EXPECT_NEAR(result_by_name("sparse_top_k_categorical_accuracy@2", scores, label), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("sparse_top_k_categorical_accuracy", scores, label), 1, 1e-6);
  EXPECT_THAT(refusal_of_metric("recall@none"), HasSubstr("after the @"));
  EXPECT_THAT(refusal_of_metric("ndcg@0"), HasSubstr("after the @"));
  EXPECT_THAT(refusal_of_metric("auc@3"), HasSubstr("\"auc\" takes no @3"));
  EXPECT_THAT(refusal_of_metric("mse@3"), HasSubstr("\"mse\" takes no @3"));
}

TEST(MetricNames, SayWhichIsTheNearestOfAnUnknownOne) {
  EXPECT_THAT(refusal_of_metric("binary_acuracy"), HasSubstr("\"binary_accuracy\"?"));
  EXPECT_THAT(refusal_of_metric("mean_square_error"), HasSubstr("\"mean_squared_error\"?"));
}

TEST(AnyAccuracy, IsToldByTheShapes) {
  Tensor rows = floats({2, 2}, {0.9f, 0.1f, 0.2f, 0.8f});
  EXPECT_NEAR(result_by_name("accuracy", floats({2, 1}, {0.9f, 0.8f}), ids({2}, {1, 0})), 0.5,
              1e-6);
  EXPECT_NEAR(result_by_name("accuracy", rows, ids({2, 1}, {0, 0})), 0.5, 1e-6);
  EXPECT_NEAR(result_by_name("accuracy", rows, floats({2, 2}, {1, 0, 0, 1})), 1, 1e-6);
  EXPECT_THROW(make_metric("accuracy")->summary(rows, floats({2, 3}, {1, 0, 0, 1, 0, 0})),
               InvalidArgumentError);
  EXPECT_THROW(make_metric("accuracy")->summary(rows, Array()), InvalidArgumentError);
}

TEST(MeanMetric, IsTheMeanOfAFunctionOfPredictionAndLabel) {
  MeanMetric within("within_one", [](const Array& prediction, const Array& label) {
    return cast(abs(prediction - label) <= 1.0f, DType::kFloat32);
  });
  Tensor prediction = floats({3}, {1, 2, 5}), label = floats({3}, {0, 4, 5});
  within.add(within.summary(prediction, label).eval());
  EXPECT_NEAR(within.result(), 2.0 / 3, 1e-6);
  within.reset();
  within.add(within.summary(prediction, label, floats({3}, {1, 2, 1})).eval());
  EXPECT_NEAR(within.result(), 0.5, 1e-6);
  EXPECT_THROW(within.summary(prediction, label, floats({2}, {1, 1})), InvalidArgumentError);
  EXPECT_THROW(MeanMetric("none", nullptr), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
