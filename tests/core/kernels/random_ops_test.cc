// Random operations: which numbers, of what they are a function, and of what they are not.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;
using Arrays = std::vector<Array>;

template <typename T = float>
std::vector<T> numbers(const Tensor& tensor) {
  auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

ConcreteFunction traced(const std::function<Arrays()>& body) {
  return trace_function({}, [&](const auto&) { return body(); });
}

std::vector<Tensor> run_at(const ConcreteFunction& function, const StepContext& step,
                           Workspace& workspace, std::vector<Tensor> arguments = {}) {
  LocalStore store;
  return run(make_plan(parse_graph(function.bytes), {}), workspace, store, step,
             std::move(arguments), {});
}
std::vector<Tensor> run_at(const ConcreteFunction& function, const StepContext& step) {
  Workspace workspace;
  return run_at(function, step, workspace);
}

StepContext step_of(std::int64_t global_step, std::uint64_t closure = 0, std::int32_t replica = 0) {
  StepContext step;
  step.global_step = global_step;
  step.closure = closure;
  step.replica = replica;
  return step;
}

// One of each kind.
ConcreteFunction one_of_each() {
  return traced([] {
    Array x = tensor({64}, std::vector<float>(64, 1));
    return Arrays{random_uniform({37}),
                  random_normal({37}),
                  random_truncated_normal({37}),
                  cast(random_integers({37}, 0, 1 << 20), DType::kFloat32),
                  dropout(x, 0.5f),
                  random_uniform_like(x)};
  });
}

void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(numbers(a[i]), numbers(b[i])) << "output " << i;
}

TEST(RandomOperations, AClosureRunAgainDrawsWhatItDrewBefore) {
  ConcreteFunction function = one_of_each();
  std::vector<Tensor> first = run_at(function, step_of(41, 17));
  StepContext retry = step_of(41, 17);
  retry.session = 3;
  retry.incarnation = 9;  // another worker
  retry.sent_layout = 2;
  retry.push_number = 1;
  Workspace used;
  run_at(function, step_of(40), used);
  expect_same_bits(run_at(function, retry, used), first);
}

TEST(RandomOperations, EveryLaneDrawsTheSameNumbersForAStep) {
  ConcreteFunction function = one_of_each();
  std::vector<std::vector<std::vector<Tensor>>> lanes(4);
  std::vector<std::thread> threads;
  for (auto& lane : lanes)
    threads.emplace_back([&function, &lane] {
      Workspace workspace;
      for (int step = 0; step < 20; ++step)
        lane.push_back(run_at(function, step_of(step), workspace));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& lane : lanes)
    for (std::size_t step = 0; step < 20; ++step) expect_same_bits(lane[step], lanes[0][step]);
}

TEST(RandomOperations, AnotherStepReplicaSeedOrPlaceDrawsAnew) {
  ConcreteFunction function = traced([] {
    return Arrays{random_uniform({8}), random_uniform({8}), random_uniform({8}, 0, 1, {.seed = 7})};
  });
  std::vector<std::vector<float>> drawn;
  for (const StepContext& step :
       {step_of(0), step_of(1), step_of(0, 0, 1), step_of(-1, 0), step_of(-1, 1)})
    for (const Tensor& one : run_at(function, step)) drawn.push_back(numbers(one));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

TEST(RandomOperations, AnArrayHasOneValueHoweverOftenItIsUsed) {
  ConcreteFunction function = traced([] {
    Array drawn = random_normal({16});
    return Arrays{drawn - drawn};
  });
  EXPECT_THAT(numbers(run_at(function, step_of(3))[0]), Each(0.0f));
  EXPECT_EQ(count_ops(function.graph, "random_normal"), 1);
}

TEST(RandomOperations, TracedAgainAFunctionIsTheSame) {
  EXPECT_EQ(one_of_each().hash, one_of_each().hash);
}

TEST(RandomOperations, AnElementDoesNotDependOnTheNumberOfElements) {
  auto all = [](std::int64_t n) {
    return traced([n] {
      return Arrays{random_uniform({n}), random_normal({n}), random_truncated_normal({n})};
    });
  };
  std::vector<Tensor> few = run_at(all(6), step_of(0)), many = run_at(all(101), step_of(0));
  for (std::size_t i = 0; i < few.size(); ++i) {
    std::vector<float> head = numbers(many[i]);
    head.resize(6);
    EXPECT_EQ(numbers(few[i]), head);
  }
}

TEST(RandomOperations, TheirStepMayBeTheCallers) {
  ConcreteFunction function = trace_function({ints({})}, [](const auto& in) {
    return Arrays{random_uniform({8}, 0, 1, {.step = std::get<Array>(in[0])})};
  });
  auto drawn = [&](std::int64_t number, std::int64_t step) {
    Workspace workspace;
    return numbers(run_at(function, step_of(step), workspace, {Tensor::scalar(number)})[0]);
  };
  EXPECT_EQ(drawn(5, 0), drawn(5, 1));
  EXPECT_NE(drawn(5, 0), drawn(6, 0));
}

TEST(RandomOperations, EvaluatedAtOnceTwoArraysDifferAndOneKeepsItsValue) {
  Array a = random_normal({8}), b = random_normal({8});
  EXPECT_EQ(numbers(a.eval()), numbers(a.eval()));
  EXPECT_NE(numbers(a.eval()), numbers(b.eval()));
}

TEST(RandomOperations, ShapesMayBeKnownOnlyWhenRun) {
  ConcreteFunction function = trace_function({floats({kAny, 2})}, [](const auto& in) {
    return Arrays{random_uniform_like(std::get<Array>(in[0]))};
  });
  for (std::int64_t rows : {3, 0, 1}) {
    Workspace workspace;
    EXPECT_EQ(
        run_at(function, step_of(0), workspace, {Tensor::zeros(DType::kFloat32, {rows, 2})})[0]
            .shape(),
        (Shape{rows, 2}));
  }
}

// ---- distributions; bounds of five deviations of each statistic for the number drawn ----

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<float>& x) {
  Moments m;
  for (float v : x) m.mean += v / static_cast<double>(x.size());
  for (float v : x) m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size());
  return m;
}

std::vector<float> draw(const std::function<Array(const Shape&)>& op, std::int64_t n = 100'000) {
  return numbers(run_at(traced([&] { return Arrays{op({n})}; }), step_of(0))[0]);
}

TEST(RandomOperations, UniformNumbersFillTheirInterval) {
  std::vector<float> x = draw([](const Shape& s) { return random_uniform(s, -1, 3); });
  Moments m = moments(x);
  EXPECT_THAT(x, Each(AllOf(Ge(-1.0f), Lt(3.0f))));
  EXPECT_NEAR(m.mean, 1, 0.02);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.02);
}

TEST(RandomOperations, UniformNumbersStayBelowTheUpperBoundWhateverIsRounded) {
  float high = std::nextafter(1.0f, 2.0f);
  EXPECT_THAT(draw([&](const Shape& s) { return random_uniform(s, 1, high); }, 1000), Each(1.0f));
  EXPECT_THAT(draw([](const Shape& s) { return random_uniform(s, 1e6f, 1e6f + 1); }),
              Each(AllOf(Ge(1e6f), Lt(1e6f + 1))));
  EXPECT_THAT(draw([](const Shape& s) { return random_uniform(s, 2, 2); }, 10), Each(2.0f));
}

TEST(RandomOperations, NormalNumbersHaveTheirMeanAndDeviation) {
  std::vector<float> x = draw([](const Shape& s) { return random_normal(s, 5, 2); });
  Moments m = moments(x);
  EXPECT_NEAR(m.mean, 5, 0.035);
  EXPECT_NEAR(m.variance, 4, 0.1);
  auto beyond = [&](float deviations) {
    return std::count_if(x.begin(), x.end(),
                         [&](float v) { return std::fabs(v - 5) > 2 * deviations; });
  };
  EXPECT_NEAR(static_cast<double>(beyond(1)), 31'731, 740);
  EXPECT_NEAR(static_cast<double>(beyond(2)), 4'550, 330);
  EXPECT_NEAR(static_cast<double>(beyond(3)), 270, 85);
}

TEST(RandomOperations, TruncatedNormalNumbersStayWithinTwoDeviations) {
  std::vector<float> x = draw([](const Shape& s) { return random_truncated_normal(s, -1, 0.5f); });
  Moments m = moments(x);
  EXPECT_THAT(x, Each(AllOf(Ge(-2.0f), Le(0.0f))));
  EXPECT_NEAR(m.mean, -1, 0.007);
  EXPECT_NEAR(m.variance, 0.25 * 0.7737, 0.004);
}

TEST(RandomOperations, IntegersCoverTheirRangeEvenly) {
  ConcreteFunction function = traced([] {
    std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                 most = std::numeric_limits<std::int64_t>::max();
    return Arrays{random_integers({60'000}, -2, 4), random_integers({1000}, least, most),
                  random_integers({10}, 9, 10)};
  });
  std::vector<Tensor> drawn = run_at(function, step_of(0));
  std::vector<std::int64_t> dice = numbers<std::int64_t>(drawn[0]),
                            wide = numbers<std::int64_t>(drawn[1]);
  for (std::int64_t side = -2; side < 4; ++side)
    EXPECT_NEAR(static_cast<double>(std::count(dice.begin(), dice.end(), side)), 10'000, 460)
        << side;
  EXPECT_NEAR(static_cast<double>(
                  std::count_if(wide.begin(), wide.end(), [](std::int64_t v) { return v < 0; })),
              500, 80);
  EXPECT_THAT(numbers<std::int64_t>(drawn[2]), Each(9));
}

// ---- dropout ----

TEST(Dropout, KeepsAShareOfTheElementsAndTheExpectation) {
  Array x = tensor({10'000}, std::vector<float>(10'000, 3));
  std::vector<float> y =
      numbers(run_at(traced([&] { return Arrays{dropout(x, 0.25f)}; }), step_of(0))[0]);
  EXPECT_THAT(y, Each(::testing::AnyOf(0.0f, ::testing::FloatEq(4.0f))));
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 0.0f)), 2500, 220);
}

TEST(Dropout, PassesTheGradientOfWhatItKept) {
  Array x = tensor({100}, std::vector<float>(100, 3));
  ConcreteFunction function = traced([&] {
    Array y = dropout(x, 0.5f);
    return Arrays{y, grad(sum(y), {x})[0]};
  });
  std::vector<Tensor> got = run_at(function, step_of(0));
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(got[1].values<float>()[i], got[0].values<float>()[i] == 0 ? 0.0f : 2.0f);
}

TEST(Dropout, DropsANumberThatIsNoneAsWell) {
  std::vector<float> y = numbers(dropout(tensor({64}, std::vector<float>(64, NAN)), 0.5f).eval());
  EXPECT_GT(std::count(y.begin(), y.end(), 0.0f), 10);
}

TEST(Dropout, OfNothingIsTheValueItself) {
  Array x = tensor({3}, {1, 2, 3});
  EXPECT_EQ(dropout(x, 0).node(), x.node());
}

TEST(RandomOperations, BoundsThatMeanNothingAreRefused) {
  Array x = tensor({3}, {1, 2, 3});
  EXPECT_THAT(message_of([&] { dropout(x, 1); }), HasSubstr("[0, 1)"));
  EXPECT_THAT(message_of([&] { dropout(x, NAN); }), HasSubstr("dropout"));
  EXPECT_THAT(message_of([&] { random_uniform({2}, 1, 0); }), HasSubstr("random_uniform"));
  EXPECT_THAT(message_of([&] { random_uniform({2}, 0, INFINITY); }), HasSubstr("random_uniform"));
  EXPECT_THAT(message_of([&] { random_normal({2}, 0, -1); }), HasSubstr("deviation"));
  EXPECT_THAT(message_of([&] { random_integers({2}, 3, 3); }), HasSubstr("[3, 3)"));
  EXPECT_THAT(message_of([&] { random_normal({kAny}); }), HasSubstr("dimension of -1"));
  EXPECT_THAT(message_of([&] { random_normal_like(Array()); }), HasSubstr("without a value"));
  EXPECT_THAT(message_of([&] { random_uniform({2}, 0, 1, {.step = x}); }),
              HasSubstr("int32 or int64"));
}

}  // namespace
}  // namespace cairn
