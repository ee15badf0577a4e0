// The dot interaction and its gradient against loops that say what they mean, over sizes that fill
// tiles and that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/exec/executor.h"
#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

struct Products {
  Tensor y, dx;
};

Products interact(const Tensor& x, const Tensor& dy) {
  ConcreteFunction function = testing::trace_function({}, [&](const auto&) {
    return std::vector<Array>{dot_interaction(Array(x)), dot_interaction_grad(Array(dy), Array(x))};
  });
  Workspace workspace;
  LocalStore store;
  auto made = run(make_plan(function.graph, {}), workspace, store, {}, {}, {});
  return {made[0], made[1]};
}

Products interact_by_definition(const Tensor& x, const Tensor& dy) {
  const std::int64_t batch = x.shape()[0], f = x.shape()[1], d = x.shape()[2];
  Products made{Tensor::zeros(DType::kFloat32, dy.shape()),
                Tensor::zeros(DType::kFloat32, x.shape())};
  const float *px = x.values<float>().data(), *pdy = dy.values<float>().data();
  float *y = made.y.mutable_values<float>().data(), *dx = made.dx.mutable_values<float>().data();
  std::int64_t pair = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 1; i < f; ++i)
      for (std::int64_t j = 0; j < i; ++j, ++pair)
        for (std::int64_t k = 0; k < d; ++k) {
          const std::int64_t at_i = (b * f + i) * d + k, at_j = (b * f + j) * d + k;
          y[pair] += px[at_i] * px[at_j];
          dx[at_i] += pdy[pair] * px[at_j];
          dx[at_j] += pdy[pair] * px[at_i];
        }
  return made;
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.type(), want.type()) << what;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.elements()); ++i)
    ASSERT_NEAR(got.values<float>()[i], want.values<float>()[i], 2e-5) << what << " element " << i;
}

TEST(DotInteraction, IsThePairwiseProductsForAnySizes) {
  for (std::int64_t batch : {1, 3})
    for (std::int64_t f : {1, 2, 4, 5, 8, 16, 17, 27, 40})
      for (std::int64_t d : {1, 3, 8, 16, 20, 33}) {
        const Tensor x = noise({batch, f, d}, static_cast<std::uint64_t>(f * 100 + d)),
                     dy = noise({batch, f * (f - 1) / 2}, 7);
        const Products got = interact(x, dy), want = interact_by_definition(x, dy);
        const std::string sizes = x.type().to_string();
        expect_near(got.y, want.y, sizes + " y");
        expect_near(got.dx, want.dx, sizes + " dx");
      }
}

TEST(DotInteraction, OfNoExamplesIsNothing) {
  const Products got = interact(noise({0, 27, 16}, 1), noise({0, 351}, 2));
  EXPECT_EQ(got.y.shape(), (Shape{0, 351}));
  EXPECT_EQ(got.dx.shape(), (Shape{0, 27, 16}));
}

TEST(DotInteraction, KeepsWhatIsNotFiniteWithinItsExample) {
  Tensor x = noise({3, 5, 4}, 1);
  x.mutable_values<float>()[20] = std::numeric_limits<float>::infinity();  // of the second example
  const Tensor dy = noise({3, 10}, 2);
  const Products got = interact(x, dy), want = interact_by_definition(x, dy);
  for (std::size_t i : {0, 1, 2, 8, 9}) {  // 10 an example
    EXPECT_NEAR(got.y.values<float>()[i], want.y.values<float>()[i], 1e-5);
    EXPECT_NEAR(got.y.values<float>()[20 + i], want.y.values<float>()[20 + i], 1e-5);
  }
  EXPECT_FALSE(std::isfinite(got.y.values<float>()[10]));
}

}  // namespace
}  // namespace cairn
