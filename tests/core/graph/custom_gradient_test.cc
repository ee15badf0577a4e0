// Operations of a program's own, with gradients of its own.
#include "core/graph/custom_gradient.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Arrays = std::vector<Array>;

// x · y, whose gradients are said to be 10 dy and 100 dy.
Array odd_product(const Array& x, const Array& y) {
  return custom_gradient(
      {x, y}, [](const Arrays& in) { return in[0] * in[1]; },
      [](const Array& dy, const Arrays&, const Array&) {
        return Arrays{dy * 10.0f, dy * 100.0f};
      });
}

TEST(CustomGradient, IsUsedInsteadOfThatOfWhatForwardRecords) {
  Array x = 3.0f, y = 4.0f;
  const Array product = odd_product(x, y);
  const Arrays gradients = grad(product * 2.0f, {x, y});
  EXPECT_EQ(product.eval().item<float>(), 12.0f);
  EXPECT_EQ(gradients[0].eval().item<float>(), 20.0f);
  EXPECT_EQ(gradients[1].eval().item<float>(), 200.0f);
}

TEST(CustomGradient, GetsWhatItIsMadeOf) {
  Array x = 3.0f;
  const Array root = custom_gradient(
      {x}, [](const Arrays& in) { return sqrt(in[0]); },
      [](const Array& dy, const Arrays& in, const Array& y) {
        return Arrays{dy * y / (in[0] * 2.0f)};  // sqrt(x) / 2x
      });
  EXPECT_NEAR(grad(root, {x})[0].eval().item<float>(), 0.5f / std::sqrt(3.0f), 1e-6f);
}

TEST(CustomGradient, OfSecondOrderIsThatOfWhatBackwardRecords) {
  Array x = 3.0f;
  const Array cube = custom_gradient(
      {x}, [](const Arrays& in) { return in[0] * in[0] * in[0]; },
      [](const Array& dy, const Arrays& in, const Array&) {
        return Arrays{dy * square(in[0]) * 5.0f};
      });
  const Array first = grad(cube, {x})[0];
  EXPECT_EQ(first.eval().item<float>(), 45.0f);
  EXPECT_EQ(grad(first, {x})[0].eval().item<float>(), 30.0f);
}

TEST(CustomGradient, ReachesVariablesThroughItsInputsAlone) {
  Variable given = make_variable("given", {}), inside = make_variable("inside", {});
  trace_function({}, [&](const auto&) {
    const Array loss = custom_gradient(
        {given.read()}, [&](const Arrays& in) { return in[0] * inside.read(); },
        [](const Array& dy, const Arrays&, const Array&) { return Arrays{dy}; });
    std::vector<std::string> names;
    for (const auto& one : variable_gradients(loss)) names.push_back(one.variable.name());
    EXPECT_THAT(names, ElementsAre("given"));
    return Outputs{};
  });
}

TEST(CustomGradient, PassesNoneWhereBackwardGivesNone) {
  Array x = 3.0f, ids = std::int64_t{2};
  const Array y = custom_gradient(
      {x, ids}, [](const Arrays& in) { return in[0] * cast(in[1], DType::kFloat32); },
      [](const Array&, const Arrays&, const Array&) {
        return Arrays{Array(), Array()};
      });
  EXPECT_FALSE(grad(y, {x})[0].defined());
}

// The bytes of the graph are all that another process gets.
TEST(CustomGradient, RunsFromTheBytesOfItsGraph) {
  auto traced = trace_function({floats({kAny})}, [](const auto& in) {
    const Array x = arg(in, 0);
    const Array y = custom_gradient(
        {x}, [](const Arrays& of) { return floor(of[0]); },
        [](const Array& dy, const Arrays&, const Array&) { return Arrays{dy}; });
    return Arrays{y, grad(reduce_sum(y * y), {x})[0]};
  });
  Workspace workspace;
  LocalStore store;
  const auto results = run(make_plan(parse_graph(traced.bytes), {}), workspace, store, {},
                           {tensor({2}, {1.5f, -0.5f})}, {});
  EXPECT_THAT(results[0].values<float>(), ElementsAre(1, -1));
  EXPECT_THAT(results[1].values<float>(), ElementsAre(2, -2));
}

TEST(CustomGradient, AChainOfThemIsReleasedWithoutRecursion) {
  Array x = 1.0f;
  for (int i = 0; i < 200'000; ++i)
    x = custom_gradient(
        {x}, [](const Arrays& in) { return in[0]; },
        [](const Array& dy, const Arrays&, const Array&) { return Arrays{dy}; });
  EXPECT_TRUE(x.defined());
}

TEST(CustomGradient, GradientsThatDoNotFitAreRefused) {
  Array x = tensor({2}, {1, 2});
  const auto with = [&](CustomBackward backward) {
    return message_of([&] {
      grad(sum(custom_gradient(
               {x}, [](const Arrays& in) { return in[0]; }, backward)),
           {x});
    });
  };
  EXPECT_THAT(with([](const Array&, const Arrays&, const Array&) { return Arrays{}; }),
              HasSubstr("0 gradients for 1 inputs"));
  EXPECT_THAT(with([](const Array& dy, const Arrays&, const Array&) { return Arrays{sum(dy)}; }),
              HasSubstr("the gradient for input 0, float32[2], is float32[]"));
  EXPECT_THAT(message_of([&] { custom_gradient({x}, [](const Arrays&) { return Array(); }, {}); }),
              HasSubstr("forward returned an Array without a value"));
  EXPECT_THAT(
      message_of([&] { custom_gradient({Array()}, [](const Arrays& in) { return in[0]; }, {}); }),
      HasSubstr("input 0"));
}

}  // namespace
}  // namespace cairn
