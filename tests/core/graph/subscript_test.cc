// Subscripts of arrays and of variables.
#include "core/graph/subscript.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/exec/local_runtime.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using testing::ids_of;
using testing::tensor;

Tensor arange(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.0f);
  return tensor(std::move(shape), values);
}
std::vector<float> numbers(const Array& array) {
  const Tensor value = array.eval();
  const auto all = value.values<float>();
  return {all.begin(), all.end()};
}
Tensor mask_of(std::initializer_list<bool> values) {
  Tensor mask(DType::kBool, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), mask.mutable_values<bool>().begin());
  return mask;
}

struct Variables : ::testing::Test {
  Variable make(const std::string& name, const Tensor& value) {
    return runtime.create_variable({.name = name,
                                    .dtype = value.dtype(),
                                    .shape = value.shape(),
                                    .initializer = Initializer::from(value)});
  }
  LocalRuntime runtime;
};
using Subscripts = Variables;
using VariableParts = Variables;
using Scatters = Variables;

TEST_F(Subscripts, SelectAsPythonDoes) {
  const Array x = arange({2, 3, 4});
  auto expect = [&](const std::vector<Subscript>& subscripts, const Shape& shape,
                    const std::vector<float>& values) {
    const Array part = subscript(x, subscripts);
    EXPECT_EQ(part.shape(), shape);
    EXPECT_EQ(part.eval().shape(), shape);
    EXPECT_EQ(numbers(part), values);
  };
  expect({1, -1, 2}, {}, {22});
  expect({0, Slice{1, {}}, Slice{.step = 2}}, {2, 2}, {4, 6, 8, 10});
  expect({kEllipsis, 0}, {2, 3}, {0, 4, 8, 12, 16, 20});
  expect({1, kEllipsis, kNewAxis, -1}, {3, 1}, {15, 19, 23});
  expect({kNewAxis, 1, 0}, {1, 4}, {12, 13, 14, 15});
  expect({0, mask_of({true, false, true}), 3}, {2}, {3, 11});
  expect({0, 0, Slice{.step = -1}}, {4}, {3, 2, 1, 0});
  expect({0, 0, Slice{100, {}, -3}}, {2}, {3, 0});
  expect({0, 0, Slice{3, 1}}, {0}, {});
  EXPECT_EQ(numbers(subscript(x, {})), numbers(x));
}

TEST_F(Subscripts, PassGradientsToWhatWasTaken) {
  const auto traced = testing::trace_function({testing::floats({3, 2})}, [](const auto& in) {
    const Array& x = testing::arg(in, 0);
    return grad(sum(subscript(x, {Slice{.step = -2}, 1})), {x});
  });
  EXPECT_EQ(traced.graph.outputs.size(), 1u);
  Variable v = make("v", arange({3, 2}));
  const auto gradients = variable_gradients(sum(v.at({Slice{.step = 2}, 1}).read()));
  ASSERT_TRUE(gradients.at(0).is_sparse());
  EXPECT_EQ(numbers(gradients[0].sparse.rows), (std::vector<float>{0, 1, 0, 1}));
}

TEST_F(Subscripts, AreRefusedWhereNothingIsMeant) {
  const Array x = arange({2, 3});
  for (const std::vector<Subscript>& wrong : std::vector<std::vector<Subscript>>{
           {2}, {-3}, {0, 0, 0}, {kEllipsis, kEllipsis}, {Slice{.step = 0}}, {mask_of({true})}})
    EXPECT_THROW(subscript(x, wrong), InvalidArgumentError);
  testing::trace_function({testing::floats({testing::kAny, 3})}, [](const auto& in) {
    const Array& open = testing::arg(in, 0);
    EXPECT_THROW(subscript(open, {0}), InvalidArgumentError);
    const Array column = subscript(open, {Slice{}, 1});
    EXPECT_EQ(column.shape(), Shape({testing::kAny}));
    return column;
  });
}

TEST_F(VariableParts, AreAssignedWholeRowsOrPartsOfThem) {
  Variable v = make("v", arange({4, 3}));
  v.at({Slice{.step = -2}}).assign(tensor({2, 3}, {30, 31, 32, 10, 11, 12}));
  EXPECT_EQ(numbers(v), (std::vector<float>{0, 1, 2, 10, 11, 12, 6, 7, 8, 30, 31, 32}));
  v.at({Slice{0, 2}, Slice{1, {}}}).assign(tensor({2, 2}, {-1, -2, -3, -4}));
  EXPECT_EQ(numbers(v), (std::vector<float>{0, -1, -2, 10, -3, -4, 6, 7, 8, 30, 31, 32}));
  v.at({kEllipsis, 0}).assign(tensor({4}, {1, 2, 3, 4}));
  EXPECT_EQ(numbers(v), (std::vector<float>{1, -1, -2, 2, -3, -4, 3, 7, 8, 4, 31, 32}));
  v.at({2, 1}).assign(5.0f);
  EXPECT_EQ(v.at({2, 1}).read().eval().item<float>(), 5.0f);
  v.at({mask_of({false, false, true, true})}).assign(tensor({2, 3}, {0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(numbers(v), (std::vector<float>{1, -1, -2, 2, -3, -4, 0, 0, 0, 1, 1, 1}));
  v.at({Slice{2, 2}}).assign(tensor({0, 3}, {}));
  EXPECT_EQ(numbers(v.at({0})), (std::vector<float>{1, -1, -2}));
}

TEST_F(VariableParts, AreAddedTo) {
  Variable v = make("v", arange({3, 2}));
  v.at({Slice{1, {}}}).assign_add(tensor({2, 2}, {10, 20, 30, 40}));
  EXPECT_EQ(numbers(v), (std::vector<float>{0, 1, 12, 23, 34, 45}));
  v.at({kEllipsis, 1}).assign_sub(tensor({3}, {1, 3, 5}));
  EXPECT_EQ(numbers(v), (std::vector<float>{0, 0, 12, 20, 34, 40}));
  Variable scalar = make("s", Tensor::scalar(2.0f));
  scalar.at({kNewAxis}).assign_add(tensor({1}, {3}));
  EXPECT_EQ(numbers(scalar.at({kEllipsis})), (std::vector<float>{5}));
}

TEST_F(VariableParts, RefuseAnotherShape) {
  Variable v = make("v", arange({3, 2}));
  EXPECT_THROW(v.at({Slice{1, {}}}).assign(tensor({2}, {1, 2})), InvalidArgumentError);
  EXPECT_THROW(v.at({1}).assign_add(1.0f), InvalidArgumentError);
  EXPECT_THROW(v.at({3}), InvalidArgumentError);
  EXPECT_THROW(Variable().at({}), FailedPreconditionError);
}

// Reads of a slice in a function ask for the rows alone.
TEST_F(VariableParts, AskForNoMoreRowsThanTheyTake) {
  Variable v = make("v", arange({100, 2}));
  const auto traced = testing::trace_function({}, [&](const auto&) {
    return v.at({Slice{10, 20}, 0}).read();
  });
  EXPECT_EQ(testing::count_ops(traced.graph, "gather_variable"), 1);
  EXPECT_EQ(testing::count_ops(traced.graph, "read_variable"), 0);
}

TEST_F(Scatters, ChangeRowsOneAfterAnotherWhereIdsAreEqual) {
  const Array ids = ids_of({1, 0, 1});
  const Array rows = tensor({3, 2}, {2, 4, 5, 0.5f, 3, 8});
  auto changed = [&](void (Variable::*scatter)(const Array&, const Array&) const) {
    Variable v = make("v", tensor({2, 2}, {1, 2, 3, 4}));
    (v.*scatter)(ids, rows);
    return numbers(v);
  };
  EXPECT_EQ(changed(&Variable::scatter_add), (std::vector<float>{6, 2.5f, 8, 16}));
  EXPECT_EQ(changed(&Variable::scatter_sub), (std::vector<float>{-4, 1.5f, -2, -8}));
  EXPECT_EQ(changed(&Variable::scatter_mul), (std::vector<float>{5, 1, 18, 128}));
  EXPECT_EQ(changed(&Variable::scatter_div), (std::vector<float>{0.2f, 4, 0.5f, 0.125f}));
  EXPECT_EQ(changed(&Variable::scatter_min), (std::vector<float>{1, 0.5f, 2, 4}));
  EXPECT_EQ(changed(&Variable::scatter_max), (std::vector<float>{5, 2, 3, 8}));
  EXPECT_EQ(changed(&Variable::scatter_update), (std::vector<float>{5, 0.5f, 3, 8}));
}

TEST_F(Scatters, ServeIntegersButForDivision) {
  Variable v = make("v", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{-7, 7}));
  const Array ids = ids_of({0, 0, 1});
  const Array rows = ids_of({-3, 2, -1});
  v.scatter_max(ids, rows);
  v.scatter_mul(ids, rows);
  v.scatter_min(ids, rows);
  const Tensor value = v.read().eval();
  EXPECT_EQ(value.values<std::int64_t>()[0], -12);
  EXPECT_EQ(value.values<std::int64_t>()[1], -7);
  EXPECT_THROW(v.scatter_div(ids, rows), InvalidArgumentError);
}

TEST_F(Scatters, OfBatchesNameRowsWithinTheirBatch) {
  Variable v = make("v", arange({2, 3, 2}));
  const Array ids = Tensor::of<std::int64_t>({2, 2}, std::vector<std::int64_t>{2, 0, 1, 1});
  v.batch_scatter_update(ids, tensor({2, 2, 2}, {-1, -2, -3, -4, -5, -6, -7, -8}));
  EXPECT_EQ(numbers(v), (std::vector<float>{-3, -4, 2, 3, -1, -2, 6, 7, -7, -8, 10, 11}));
  const Array beyond = Tensor::of<std::int64_t>({2, 1}, std::vector<std::int64_t>{3, 0});
  EXPECT_THROW(v.batch_scatter_update(beyond, tensor({2, 1, 2}, {0, 0, 0, 0})),
               InvalidArgumentError);
  EXPECT_THROW(v.batch_scatter_update(Tensor::zeros(DType::kInt64, {3, 1}),
                                      Tensor::zeros(DType::kFloat32, {3, 1, 2})),
               InvalidArgumentError);
  Variable flat = make("flat", arange({3, 1}));
  flat.batch_scatter_update(ids_of({1, 1}), tensor({2, 1}, {5, 6}));
  EXPECT_EQ(numbers(flat), (std::vector<float>{0, 6, 2}));
}

}  // namespace
}  // namespace cairn
