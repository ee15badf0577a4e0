// Every gradient against differences of the function itself, leading dimensions known and unknown.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "core/graph/ops/ops_check.h"
#include "core/graph/ops/ops_wait.h"
#include "tests/core/graph/numeric_gradient.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using Arrays = std::vector<Array>;
using Case = GradientCase;

Tensor bools(Shape shape, const std::vector<int>& bits) {
  Tensor made(DType::kBool, std::move(shape));
  for (std::size_t i = 0; i < bits.size(); ++i) made.mutable_values<bool>()[i] = bits[i] != 0;
  return made;
}

std::vector<Case> unary_cases() {
  auto one = [](Array (*op)(const Array&)) { return [op](const Arrays& in) { return op(in[0]); }; };
  Tensor x = values({3, 4}, 1), p = positive({3, 4}, 2);
  return {
      {"neg", one(neg), {x}},
      {"abs", one(abs), {x}},
      {"exp", one(exp), {x}},
      {"log", one(log), {p}},
      {"log1p", one(log1p), {p}},
      {"sqrt", one(sqrt), {p}},
      {"rsqrt", one(rsqrt), {p}},
      {"square", one(square), {x}},
      {"reciprocal", one(reciprocal), {p}},
      {"sigmoid", one(sigmoid), {x}},
      {"tanh", one(tanh), {x}},
      {"relu", one(relu), {x}},
      {"expm1", one(expm1), {x}},
      {"sin", one(sin), {x}},
      {"cos", one(cos), {x}},
      {"erf", one(erf), {x}},
      {"erfc", one(erfc), {x}},
      {"selu", one(selu), {x}},
      {"relu6", one(relu6), {values({3, 4}, 28, -2, 8)}},
      {"swish", one(swish), {x}},
      {"gelu", one(gelu), {x}},
      {"gelu_approximate", one(gelu_approximate), {x}},
      {"elu", [](const Arrays& in) { return elu(in[0], 0.7f); }, {x}},
      {"leaky_relu", [](const Arrays& in) { return leaky_relu(in[0], 0.3f); }, {x}},
      {"dropout", [](const Arrays& in) { return dropout(in[0], 0.5f, {.seed = 3}) * in[0]; }, {x}},
      {"softplus", one(softplus), {x}},
      {"softmax", one(softmax), {x}},
      {"log_softmax", one(log_softmax), {x}},
      {"wait_for", [](const Arrays& in) { return wait_for(in[0] * in[0], 0); }, {x}},
      {"check_numerics", [](const Arrays& in) { return check_numerics(in[0] * in[0], "x"); }, {x}},
      {"check_range",
       [](const Arrays& in) { return check_range(in[0] * in[0], 0, 100, "x", ""); },
       {x}},
      {"after", [](const Arrays& in) { return after(in[0] * in[0], in[0]); }, {x}},
      {"cast",
       [](const Arrays& in) { return cast(cast(in[0], DType::kFloat32), DType::kFloat32) * 2.0f; },
       {x}}};
}

std::vector<Case> binary_cases() {
  auto two = [](Array (*op)(const Array&, const Array&)) {
    return [op](const Arrays& in) { return op(in[0], in[1]); };
  };
  Tensor a = values({3, 4}, 3), b = values({3, 4}, 4, -1.85f, 2.15f), p = positive({3, 4}, 5),
         row = positive({4}, 6), column = positive({3, 1}, 7), one = positive({}, 8);
  std::vector<Case> all;
  for (const Tensor& other : {p, row, column, one}) {
    all.push_back({"add", two(add), {a, other}});
    all.push_back({"sub", two(sub), {other, a}});
    all.push_back({"mul", two(mul), {a, other}});
    all.push_back({"div", two(div), {a, other}});
    all.push_back({"pow", two(pow), {p, other}});
  }
  all.push_back({"maximum", two(maximum), {a, b}});
  all.push_back({"minimum", two(minimum), {a, b}});
  all.push_back({"floor_mod",
                 [](const Arrays& in) { return floor_mod(in[0], in[1] + 3.0f); },
                 {values({4}, 9, 4.2f, 4.9f), values({4}, 10, -0.3f, 0.3f)}});
  all.push_back({"where",
                 [](const Arrays& in) { return where(in[0], in[1], in[2] * in[2]); },
                 {bools({3, 1}, {1, 0, 1}), a, row}});
  return all;
}

std::vector<Case> product_cases() {
  std::vector<Case> all;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      Tensor a = values(ta ? Shape{4, 3} : Shape{3, 4}, 11),
             b = values(tb ? Shape{2, 4} : Shape{4, 2}, 12);
      all.push_back(
          {"matmul", [=](const Arrays& in) { return matmul(in[0], in[1], ta, tb); }, {a, b}});
      Tensor c = values(ta ? Shape{2, 4, 3} : Shape{2, 3, 4}, 13),
             d = values(tb ? Shape{2, 2, 4} : Shape{2, 4, 2}, 14);
      all.push_back({"batch_matmul",
                     [=](const Arrays& in) { return batch_matmul(in[0], in[1], ta, tb); },
                     {c, d}});
    }
  return all;
}

std::vector<Case> reduction_cases() {
  using Reduce = Array (*)(const Array&, const std::vector<int>&, bool);
  std::vector<Case> all;
  std::vector<std::pair<const char*, Reduce>> reductions = {
      {"reduce_sum", reduce_sum},   {"reduce_mean", reduce_mean},
      {"reduce_max", reduce_max},   {"reduce_min", reduce_min},
      {"reduce_prod", reduce_prod}, {"reduce_logsumexp", reduce_logsumexp}};
  for (auto [name, reduce] : reductions)
    for (bool keep : {false, true})
      for (const std::vector<int>& axes :
           std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}})
        all.push_back({name,
                       [=, reduce = reduce](const Arrays& in) { return reduce(in[0], axes, keep); },
                       {values({2, 3, 2}, 15)}});
  return all;
}

std::function<Array(const Arrays&)> stacked(int axis) {
  return [axis](const Arrays& in) { return stack({in[0], square(in[0])}, axis); };
}

std::vector<Case> shape_cases() {
  Tensor x = values({3, 4}, 16), y = values({2, 4}, 17), z = values({3, 2}, 18),
         row = values({4}, 19);
  return {
      {"reshape",
       [](const Arrays& in) {
         return reshape(in[0], {-1, 2});
       },
       {x}},
      {"expand_dims", [](const Arrays& in) { return expand_dims(in[0], 1) * 2.0f; }, {x}},
      {"reshape_like",
       [](const Arrays& in) { return reshape_like(in[0], in[1]); },
       {values({2, 6}, 20), x}},
      {"broadcast_like", [](const Arrays& in) { return broadcast_like(in[0], in[1]); }, {row, x}},
      {"sum_to_like", [](const Arrays& in) { return sum_to_like(in[0], in[1]); }, {x, row}},
      {"transpose",
       [](const Arrays& in) {
         return transpose(in[0], {2, 0, 1});
       },
       {values({2, 3, 4}, 21)}},
      {"concat",
       [](const Arrays& in) {
         return concat({in[0], in[1]}, 0);
       },
       {x, y}},
      {"concat",
       [](const Arrays& in) {
         return concat({in[0], in[1], in[0]}, 1);
       },
       {x, z}},
      {"stack", stacked(0), {x}},
      {"stack", stacked(2), {x}},
      {"slice", [](const Arrays& in) { return slice(in[0], 1, 1, 2); }, {x}},
      {"slice", [](const Arrays& in) { return slice(in[0], 0, 1, -1); }, {x}},
      {"slice_grad",
       [](const Arrays& in) { return slice_grad(slice(in[0], 1, 0, 2), in[0], 1, 2) * in[0]; },
       {x}}};
}

std::vector<Case> indexing_cases() {
  Tensor x = values({4, 3}, 22), rows = values({5, 3}, 23), splits = ids_of({0, 2, 2, 5});
  std::vector<Case> all = {
      {"gather", [](const Arrays& in) { return gather(in[0], in[1]); }, {x, ids_of({3, 0, 3})}},
      {"gather",
       [](const Arrays& in) { return gather(in[0], in[1], 1); },
       {x, ids_of({2, 2, 0, 1})}},
      {"gather_grad",
       [](const Arrays& in) { return gather_grad(in[0], in[2], in[1]); },
       {rows, x, ids_of({0, 3, 3, 1, 0})}},
      {"unsorted_segment_sum",
       [](const Arrays& in) { return unsorted_segment_sum(in[0], in[1], 3); },
       {rows, ids_of({2, -1, 0, 2, -7})}}};
  for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
    all.push_back({"combine_rows",
                   [=](const Arrays& in) { return combine_rows(in[0], in[1], combiner); },
                   {rows, splits}});
    all.push_back({"combine_rows_grad",
                   [=](const Arrays& in) {
                     return combine_rows_grad(in[0], in[2], stop_gradient(in[1]), combiner);
                   },
                   {values({3, 3}, 24), rows, splits}});
  }
  return all;
}

std::vector<Case> scatter_cases() {
  Tensor x = values({4, 3}, 29), rows = values({5, 3}, 30, -1.85f, 2.15f),
         ids = ids_of({3, 0, 3, 1, 0});
  std::vector<Case> all;
  std::vector<std::pair<const char*, Array (*)(const Array&, const Array&, const Array&)>>
      scatters = {{"scatter_add", scatter_add},
                  {"scatter_sub", scatter_sub},
                  {"scatter_max", scatter_max},
                  {"scatter_min", scatter_min},
                  {"scatter_update", scatter_update}};
  for (auto [name, scatter] : scatters)
    all.push_back({name,
                   [scatter = scatter](const Arrays& in) { return scatter(in[0], in[2], in[1]); },
                   {x, rows, ids}});
  for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn})
    all.push_back({"combine_rows weighted",
                   [=](const Arrays& in) { return combine_rows(in[0], in[2], combiner, in[1]); },
                   {rows, positive({5}, 31), ids_of({0, 2, 2, 5})}});
  return all;
}

std::vector<Case> image_cases() {
  std::vector<Case> all;
  Tensor x = values({2, 4, 3, 2}, 32), filter = values({3, 2, 2, 2}, 33);
  for (const Conv2dOptions& o : {Conv2dOptions{}, Conv2dOptions{{2, 1}, Padding::kSame},
                                 Conv2dOptions{{1, 2}, Padding::kSame, {2, 2}}}) {
    Tensor dy = values(conv2d(Array(x), Array(filter), o).shape(), 34);
    all.push_back(
        {"conv2d", [=](const Arrays& in) { return conv2d(in[0], in[1], o); }, {x, filter}});
    all.push_back({"conv2d_grad_input",
                   [=](const Arrays& in) { return conv2d_grad_input(in[0], in[1], in[2], o); },
                   {dy, filter, x}});
    all.push_back({"conv2d_grad_filter",
                   [=](const Arrays& in) { return conv2d_grad_filter(in[0], in[1], in[2], o); },
                   {dy, x, filter}});
  }
  Tensor image = values({1, 4, 4, 2}, 35);
  for (const Pool2dOptions& o : {Pool2dOptions{}, Pool2dOptions{{3, 2}, {1, 2}, Padding::kSame},
                                 Pool2dOptions{{1, 3}, {2, 1}}}) {
    Tensor dy = values(avg_pool2d(Array(image), o).shape(), 36);
    all.push_back({"max_pool2d", [=](const Arrays& in) { return max_pool2d(in[0], o); }, {image}});
    all.push_back({"avg_pool2d", [=](const Arrays& in) { return avg_pool2d(in[0], o); }, {image}});
    all.push_back({"avg_pool2d_grad",
                   [=](const Arrays& in) { return avg_pool2d_grad(in[0], in[1], o); },
                   {dy, image}});
  }
  return all;
}

std::vector<Case> normalise_cases() {
  Tensor gamma = positive({3}, 37), beta = values({3}, 38);
  return {{"layer_norm",
           [](const Arrays& in) { return layer_norm(in[0], in[1], in[2]); },
           {values({4, 3}, 39), gamma, beta}},
          {"layer_norm",
           [](const Arrays& in) { return layer_norm(in[0], in[1], in[2], 0.1f); },
           {values({2, 2, 3}, 40), gamma, beta}},
          {"batch_norm",
           [](const Arrays& in) { return batch_norm(in[0], in[1], in[2]).y; },
           {values({4, 3}, 41), gamma, beta}},
          {"batch_norm",
           [](const Arrays& in) { return batch_norm(in[0], in[1], in[2], 0.1f).y; },
           {values({2, 2, 3}, 42), gamma, beta}}};
}

std::vector<Case> loss_cases() {
  Tensor logits = values({3, 4}, 25), labels = positive({3, 4}, 26);
  return {{"sigmoid_cross_entropy_with_logits",
           [](const Arrays& in) { return sigmoid_cross_entropy_with_logits(in[0], in[1]); },
           {labels, logits}},
          {"softmax_cross_entropy_with_logits",
           [](const Arrays& in) { return softmax_cross_entropy_with_logits(in[0], in[1]); },
           {labels, logits}},
          {"sparse_softmax_cross_entropy_with_logits",
           [](const Arrays& in) { return sparse_softmax_cross_entropy_with_logits(in[0], in[1]); },
           {ids_of({3, 0, 1}), logits}},
          {"dot_interaction",
           [](const Arrays& in) { return dot_interaction(in[0]); },
           {values({2, 4, 3}, 27)}}};
}

TEST(NumericGradient, OfElementwiseOperationsOfOneInput) { check_gradients(unary_cases()); }
TEST(NumericGradient, OfElementwiseOperationsThatBroadcast) { check_gradients(binary_cases()); }
TEST(NumericGradient, OfMatrixProducts) { check_gradients(product_cases()); }
TEST(NumericGradient, OfReductions) { check_gradients(reduction_cases()); }
TEST(NumericGradient, OfShapes) { check_gradients(shape_cases()); }
TEST(NumericGradient, OfIndexing) { check_gradients(indexing_cases()); }
TEST(NumericGradient, OfScatters) { check_gradients(scatter_cases()); }
TEST(NumericGradient, OfWindowsOverImages) { check_gradients(image_cases()); }
TEST(NumericGradient, OfNormalisations) { check_gradients(normalise_cases()); }
TEST(NumericGradient, OfLossesAndInteractions) { check_gradients(loss_cases()); }

TEST(NumericGradient, IsCheckedForEveryOperationThatHasOne) {
  std::set<std::string> checked = {"stop_gradient", "all_reduce"};  // all_reduce_test.cc
  for (const char* without_second_derivative :
       {"dot_interaction_grad", "concat_grad", "reduce_prod_grad", "max_pool2d_grad",
        "layer_norm_grad", "batch_norm_grad"})
    checked.insert(without_second_derivative);
  for (const auto& cases : {unary_cases(), binary_cases(), product_cases(), reduction_cases(),
                            shape_cases(), indexing_cases(), scatter_cases(), image_cases(),
                            normalise_cases(), loss_cases(), arrange_cases()})
    for (const Case& one : cases) checked.insert(one.name);
  for (const OpDef* op : all_ops())
    EXPECT_TRUE(op->gradient == nullptr || checked.count(std::string(op->name)) > 0) << op->name;
}

}  // namespace
}  // namespace cairn
