// The form of gradients: which nodes they take, what is dense and what is sparse.
#include <gmock/gmock.h>

#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Gradient, ALossThatIsNoScalarIsRefused) {
  Array x = tensor({2}, {1, 2});
  EXPECT_THAT(message_of([&] { grad(square(x), {x}); }), HasSubstr("float32[2]"));
}

TEST(Gradient, IsUndefinedWhereTheLossDoesNotDepend) {
  Array x = 1.0f, y = 2.0f, ids = std::int64_t{3};
  auto gradients = grad(x * x + stop_gradient(y) + cast(ids, DType::kFloat32), {x, y, ids});
  EXPECT_TRUE(gradients[0].defined());
  EXPECT_FALSE(gradients[1].defined());
  EXPECT_FALSE(gradients[2].defined());
}

TEST(Gradient, OfTheLossItselfIsOne) {
  Array x = 3.0f;
  EXPECT_EQ(grad(x, {x})[0].eval().item<float>(), 1.0f);
}

TEST(Gradient, NothingIsSummedBackWhereShapesAreEqual) {
  auto traced =
      trace_function({floats({kAny, 4}), floats({kAny, 4}), floats({4})}, [](const auto& in) {
        return grad(reduce_sum(arg(in, 0) * arg(in, 1) + arg(in, 2)), {arg(in, 0), arg(in, 2)});
      });
  EXPECT_EQ(count_ops(traced.graph, "sum_to_like"), 1);  // the bias alone was stretched
}

TEST(Gradient, ABatchOfUnknownSizeIsAveragedByItsSizeWhenRun) {
  Variable w = make_variable("w", {4, 1});
  auto traced = trace_function({floats({kAny, 4}), floats({kAny, 1})}, [&](const auto& in) {
    Array loss = mean(sigmoid_cross_entropy_with_logits(arg(in, 1), matmul(arg(in, 0), w)));
    return variable_gradients(loss)[0].dense;
  });
  EXPECT_EQ(traced.graph.type(traced.graph.outputs[0]), floats({4, 1}));
  EXPECT_EQ(count_ops(traced.graph, "dim_size"), 1);
}

TEST(VariableGradients, OfAGatherIsASparsePairOfFlatIdsAndRows) {
  Variable table = make_variable("table", {100, 8});
  auto traced = trace_function({TensorType{DType::kInt32, {kAny, 3}}}, [&](const auto& in) {
    auto gradients = variable_gradients(mean(square(table.gather(arg(in, 0)))));
    EXPECT_EQ(gradients.size(), 1u);
    EXPECT_TRUE(gradients[0].is_sparse());
    EXPECT_EQ(gradients[0].sparse.dense_shape, (Shape{100, 8}));
    return std::vector<Array>{gradients[0].sparse.ids, gradients[0].sparse.rows};
  });
  EXPECT_EQ(traced.graph.type(traced.graph.outputs[0]), ints({kAny}));
  EXPECT_EQ(traced.graph.type(traced.graph.outputs[1]), floats({kAny, 8}));
  EXPECT_EQ(count_ops(traced.graph, "gather_grad"), 0);
}

TEST(VariableGradients, SeveralGathersOfOneVariableJoinTheirSlices) {
  Variable table = make_variable("table", {100, 8});
  auto traced = trace_function({ints({5}), ints({7})}, [&](const auto& in) {
    auto gradients = variable_gradients(reduce_sum(table.gather(arg(in, 0))) +
                                        reduce_sum(table.gather(arg(in, 1))));
    EXPECT_EQ(gradients.size(), 1u);
    return std::vector<Array>{gradients[0].sparse.ids, gradients[0].sparse.rows};
  });
  EXPECT_EQ(traced.graph.type(traced.graph.outputs[0]), ints({12}));
  EXPECT_EQ(traced.graph.type(traced.graph.outputs[1]), floats({12, 8}));
}

TEST(VariableGradients, OfAVariableReadAndGatheredIsDense) {
  Variable table = make_variable("table", {100, 8});
  trace_function({ints({5})}, [&](const auto& in) {
    auto gradients =
        variable_gradients(reduce_sum(table.gather(arg(in, 0))) + reduce_sum(square(table.read())));
    EXPECT_EQ(gradients.size(), 1u);
    EXPECT_FALSE(gradients[0].is_sparse());
    EXPECT_EQ(gradients[0].dense.shape(), (Shape{100, 8}));
    return Outputs{};
  });
}

TEST(VariableGradients, ComeInOrderOfFirstUseForTrainableVariablesThatMatter) {
  Variable a = make_variable("a", {2}), b = make_variable("b", {2}),
           unused = make_variable("unused", {2});
  VariableSpec frozen_spec = a.spec();
  frozen_spec.name = "frozen";
  frozen_spec.trainable = false;
  Variable frozen(std::make_shared<const VariableSpec>(frozen_spec));
  trace_function({}, [&](const auto&) {
    unused.read();
    Array first = b.read(), second = a.read();
    Array loss = reduce_sum(first * second * frozen.read() + second);
    std::vector<std::string> names, asked;
    for (const auto& g : variable_gradients(loss)) names.push_back(g.variable.name());
    for (const auto& g : variable_gradients(loss, {unused, frozen}))
      asked.push_back(g.variable.name());
    EXPECT_THAT(names, ElementsAre("b", "a"));
    EXPECT_THAT(asked, ElementsAre("frozen"));
    return Outputs{};
  });
}

TEST(Gradient, EveryOperationOfFloatsHasOneOrIsKnownToPassNone) {
  const std::vector<std::string> none = {"sign",
                                         "floor",
                                         "ceil",
                                         "round",
                                         "is_finite",
                                         "logical_not",
                                         "stop_gradient",
                                         "equal",
                                         "less",
                                         "not_equal",
                                         "less_equal",
                                         "greater",
                                         "greater_equal",
                                         "logical_and",
                                         "dim_size",
                                         "logical_or",
                                         "argmax",
                                         "zeros_like",
                                         "ones_like",
                                         "one_hot",
                                         "constant",
                                         "argument",
                                         "iterator_next",
                                         "element_count",
                                         "read_variable",
                                         "gather_variable",
                                         "update_shared",
                                         "update_variable",
                                         "find_key",
                                         "string_hash_bucket",
                                         "step_key",
                                         "is_last_of_id",
                                         "random_uniform",
                                         "random_normal",
                                         "random_truncated_normal",
                                         "random_integers"};
  for (const OpDef* op : all_ops())
    EXPECT_EQ(op->gradient == nullptr, std::find(none.begin(), none.end(), op->name) != none.end())
        << op->name;
}

}  // namespace
}  // namespace cairn
