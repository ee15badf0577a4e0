// Metrics against scikit-learn: metric_vectors.json, which metric_vectors.py makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "nn/metrics/metric_names.h"
#include "nn/metrics/ranking_metrics.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

Json vectors_of(const char* kind) {
  return parse_json(system_disk().read("tests/nn/metric_vectors.json"), "metric_vectors.json")
      .at(kind);
}

template <typename T>
Tensor tensor_of(const Json& numbers, Shape shape) {
  const std::vector<T> values = numbers;
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

struct Case {
  Tensor prediction, label, weights;
};

// A number in `one` is the result of the metric of its name, unless it is one of `settings`.
void expect_results(const Json& one, const Case& batch, const std::vector<std::string>& settings) {
  for (const auto& [name, value] : one.items()) {
    if (!value.is_number() || std::count(settings.begin(), settings.end(), name) > 0) continue;
    std::unique_ptr<Metric> metric = make_metric(name);
    metric->add(metric->summary(batch.prediction, batch.label, batch.weights).eval());
    EXPECT_NEAR(metric->result(), value.get<double>(), 1e-5) << name;
  }
}

TEST(MetricVectors, OfBinaryModelsAgreeWithScikitLearn) {
  const Json all = vectors_of("binary");
  ASSERT_EQ(all.size(), 2u);
  for (const Json& one : all) {
    const Shape n{static_cast<std::int64_t>(one.at("label").size())};
    expect_results(one,
                   {tensor_of<float>(one.at("prediction"), n), tensor_of<float>(one.at("label"), n),
                    tensor_of<float>(one.at("weights"), n)},
                   {});
  }
}

TEST(MetricVectors, OfClassesAgreeWithScikitLearn) {
  const Json all = vectors_of("classes");
  ASSERT_EQ(all.size(), 1u);
  for (const Json& one : all) {
    const Shape n{static_cast<std::int64_t>(one.at("label").size())};
    const Shape rows{n[0], one.at("classes").get<std::int64_t>()};
    expect_results(
        one,
        {tensor_of<float>(one.at("prediction"), rows), tensor_of<std::int64_t>(one.at("label"), n),
         tensor_of<float>(one.at("weights"), n)},
        {"classes"});
  }
}

TEST(MetricVectors, OfListsAgreeWithScikitLearn) {
  const Json all = vectors_of("lists");
  ASSERT_EQ(all.size(), 2u);
  for (const Json& one : all) {
    const Shape b{static_cast<std::int64_t>(one.at("weights").size())};
    const Shape lists{b[0], one.at("length").get<std::int64_t>()};
    const Case batch{tensor_of<float>(one.at("prediction"), lists),
                     tensor_of<float>(one.at("label"), lists),
                     tensor_of<float>(one.at("weights"), b)};
    expect_results(one, batch, {"length", "linear_ndcg@3"});
    Ndcg linear({.k = 3, .gain = Gain::kLinear});
    linear.add(linear.summary(batch.prediction, batch.label, batch.weights).eval());
    EXPECT_NEAR(linear.result(), one.at("linear_ndcg@3").get<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace cairn::nn
