// Operations traced with a leading dimension that is unknown, run through one workspace with batch
// after batch of another size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using testing::noise;

using namespace testing;  // NOLINT
using Arrays = std::vector<Array>;
using Op = std::function<Array(const Array&)>;

struct Case {
  const char* name;
  Op op;
  Shape example;
  // does an example's result depend on it alone?
  enum class Of : std::uint8_t { kExample, kBatch } of = Of::kExample;
};

std::vector<Case> cases() {
  Array filter = noise({3, 3, 2, 4}, 1), gamma = noise({6}, 2), beta = noise({6}, 3),
        channels = noise({2}, 4), weights = noise({6, 3}, 5);
  return {{"conv2d",
           [=](const Array& x) {
             return conv2d(x, filter, {{2, 1}, Padding::kSame});
           },
           {5, 4, 2}},
          {"max_pool2d",
           [](const Array& x) {
             return max_pool2d(x, {{2, 2}, {1, 1}, Padding::kSame});
           },
           {4, 4, 2}},
          {"avg_pool2d", [](const Array& x) { return avg_pool2d(x, {}); }, {4, 4, 2}},
          {"layer_norm", [=](const Array& x) { return layer_norm(x, gamma, beta); }, {6}},
          {"batch_norm",
           [=](const Array& x) { return batch_norm(x, channels, channels).y; },
           {3, 3, 2},
           Case::Of::kBatch},
          {"reduce_prod", [](const Array& x) { return reduce_prod(x, {1}); }, {6}},
          {"reduce_logsumexp", [](const Array& x) { return reduce_logsumexp(x, {-1}, true); }, {6}},
          {"softmax", softmax, {6}},
          {"gelu", gelu, {6}},
          {"selu", selu, {6}},
          {"matmul", [=](const Array& x) { return matmul(x, weights); }, {6}},
          {"dot_interaction", dot_interaction, {3, 2}},
          {"convolutional network",
           [=](const Array& x) {
             Array hidden = max_pool2d(relu(conv2d(x, filter, {{1, 1}, Padding::kSame})));
             return reshape(dropout(hidden, 0.5f), {-1, 2 * 2 * 4});
           },
           {4, 4, 2},
           Case::Of::kBatch}};  // an element's place in the batch chooses what is dropped
}

// Outputs: the result, the gradient of its weighted sum.
ConcreteFunction traced(const Case& of, std::int64_t rows) {
  std::vector<std::int64_t> dims = of.example.dims();
  dims.insert(dims.begin(), rows);
  return trace_function({floats(Shape(dims))}, [&](const auto& in) {
    const Array& x = std::get<Array>(in[0]);
    Array y = of.op(x);
    return Arrays{y, grad(sum(square(y) + y), {x})[0]};
  });
}

class Runner {
 public:
  explicit Runner(const ConcreteFunction& function)
      : plan_(make_plan(parse_graph(function.bytes), {})) {}
  template <typename... Tensors>
  std::vector<Tensor> operator()(const Tensors&... arguments) {
    return run(plan_, workspace_, store_, {}, {arguments...}, {});
  }

 private:
  std::shared_ptr<const Plan> plan_;
  Workspace workspace_;
  LocalStore store_;
};

Tensor batch_of(const Shape& example, std::int64_t rows, std::uint64_t seed) {
  std::vector<std::int64_t> dims = example.dims();
  dims.insert(dims.begin(), rows);
  return noise(Shape(dims), seed);
}

// Row i of a batch, as a batch of one.
Tensor row_of(const Tensor& batch, std::int64_t i) {
  Tensor made(DType::kFloat32, batch.shape().with_dim(0, 1));
  std::int64_t n = batch.shape().row_elements();
  std::copy_n(batch.values<float>().begin() + i * n, n, made.mutable_values<float>().begin());
  return made;
}

void expect_close(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.elements()); ++i)
    ASSERT_NEAR(got.values<float>()[i], want.values<float>()[i],
                1e-5 + 1e-5 * std::fabs(want.values<float>()[i]))
        << "element " << i;
}

TEST(DynamicBatch, ResultsAreThoseOfKnownShapesForBatchesOfAnySize) {
  for (const Case& of : cases()) {
    Runner any(traced(of, kAny));
    for (std::int64_t rows : {4, 1, 7, 0, 4, 2}) {
      SCOPED_TRACE(str(of.name, " of ", rows));
      Tensor x = batch_of(of.example, rows, 6);
      std::vector<Tensor> got = any(x), want = Runner(traced(of, rows))(x);
      for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i]);
      EXPECT_EQ(got[1].shape(), x.shape());
    }
  }
}

TEST(DynamicBatch, AnExamplesResultIsWhatItIsAlone) {
  for (const Case& of : cases()) {
    if (of.of != Case::Of::kExample) continue;
    SCOPED_TRACE(of.name);
    Runner any(traced(of, kAny));
    Tensor x = batch_of(of.example, 5, 7);
    std::vector<Tensor> together = any(x);
    for (std::int64_t i = 0; i < 5; ++i) {
      std::vector<Tensor> alone = any(row_of(x, i));
      for (std::size_t o = 0; o < alone.size(); ++o) expect_close(alone[o], row_of(together[o], i));
    }
  }
}

TEST(DynamicBatch, GradientsOfParametersOverABatchWithoutExamplesAreZero) {
  std::vector<SignatureEntry> signature = {floats({kAny, 4, 4, 2}), floats({3, 3, 2, 4}),
                                           floats({4})};
  ConcreteFunction function = trace_function(signature, [](const auto& in) {
    const Array &x = std::get<Array>(in[0]), &filter = std::get<Array>(in[1]),
                &gamma = std::get<Array>(in[2]);
    Array y = batch_norm(conv2d(x, filter), gamma, gamma).y;
    return grad(sum(y), {filter, gamma});
  });
  Workspace workspace;
  LocalStore store;
  std::vector<Tensor> inputs = {Tensor::zeros(DType::kFloat32, {0, 4, 4, 2}),
                                noise({3, 3, 2, 4}, 8), noise({4}, 9)};
  for (const Tensor& gradient :
       run(make_plan(function.graph, {}), workspace, store, {}, inputs, {}))
    for (float x : gradient.values<float>()) EXPECT_EQ(x, 0);
}

TEST(DynamicBatch, ScattersTakeAnyNumberOfRows) {
  ConcreteFunction function =
      trace_function({floats({kAny, 2}), ints({kAny}), floats({kAny, 2})}, [](const auto& in) {
        const Array &x = std::get<Array>(in[0]), &ids = std::get<Array>(in[1]),
                    &rows = std::get<Array>(in[2]);
        return Arrays{scatter_add(x, ids, rows), scatter_update(x, ids, rows)};
      });
  Workspace workspace;
  LocalStore store;
  auto plan = make_plan(parse_graph(function.bytes), {});
  Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  auto of = [&](const std::vector<std::int64_t>& ids, const std::vector<float>& rows) {
    return run(plan, workspace, store, {},
               {x, ids_of(ids), tensor({static_cast<std::int64_t>(ids.size()), 2}, rows)}, {});
  };
  std::vector<Tensor> none = of({}, {}), twice = of({1, 1}, {10, 20, 30, 40});
  expect_close(none[0], x);
  expect_close(none[1], x);
  expect_close(twice[0], tensor({2, 2}, {1, 2, 43, 64}));
  expect_close(twice[1], tensor({2, 2}, {1, 2, 30, 40}));
  EXPECT_NE(message_of([&] { of({2}, {1, 1}); }).find("id 2"), std::string::npos);
  EXPECT_NE(message_of([&] { of({-1}, {1, 1}); }).find("id -1"), std::string::npos);
}

TEST(DynamicBatch, SegmentSumsDropNegativeIdsAndRefuseThoseBeyond) {
  ConcreteFunction function = trace_function({floats({kAny}), ints({kAny})}, [](const auto& in) {
    return unsorted_segment_sum(std::get<Array>(in[0]), std::get<Array>(in[1]), 2);
  });
  Runner sums(function);
  expect_close(sums(tensor({4}, {1, 2, 3, 4}), ids_of({1, -1, 1, 0}))[0], tensor({2}, {4, 4}));
  expect_close(sums(tensor({0}, {}), ids_of({}))[0], tensor({2}, {0, 0}));
  EXPECT_NE(
      message_of([&] { sums(tensor({1}, {1}), ids_of({2})); }).find("segment 2 at position 0"),
      std::string::npos);
}

}  // namespace
}  // namespace cairn
