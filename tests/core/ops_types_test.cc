// The types that operations infer, and the errors that they raise when they are recorded.
#include <gmock/gmock.h>

#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::AllOf;
using ::testing::HasSubstr;

Array floats_like(Shape shape) { return Tensor::zeros(DType::kFloat32, std::move(shape)); }
Array ids_like(Shape shape) { return Tensor::zeros(DType::kInt64, std::move(shape)); }

// The type of an operation on arguments of unknown size, found while tracing.
template <typename F>
TensorType traced_type(const std::vector<SignatureEntry>& signature, F body) {
  TensorType type;
  trace_function(signature, [&](const auto& in) {
    std::vector<Array> arrays;
    for (const auto& one : in) arrays.push_back(std::get<Array>(one));
    Array y = body(arrays);
    type = y.type();
    return y;
  });
  return type;
}

TEST(OpTypes, BinaryOperationsBroadcast) {
  EXPECT_EQ((floats_like({4, 1}) + floats_like({3})).shape(), (Shape{4, 3}));
  EXPECT_EQ((floats_like({2, 3}) * 2.0f).shape(), (Shape{2, 3}));
  EXPECT_EQ(less(floats_like({2, 1, 3}), floats_like({4, 1})).type(),
            (TensorType{DType::kBool, {2, 4, 3}}));
}

TEST(OpTypes, UnknownDimensionsBroadcastAgainstOneAndAgainstEachOther) {
  auto add2 = [](const auto& in) { return in[0] + in[1]; };
  EXPECT_EQ(traced_type({floats({kAny, 4}), floats({4})}, add2), floats({kAny, 4}));
  EXPECT_EQ(traced_type({floats({kAny, 4}), floats({kAny, 1})}, add2), floats({kAny, 4}));
  EXPECT_EQ(traced_type({floats({kAny}), floats({8})}, add2), floats({8}));
  EXPECT_EQ(traced_type({floats({kAny}), floats({1})}, add2), floats({kAny}));
}

TEST(OpTypes, ReshapeInfersTheOneUnknownDimension) {
  EXPECT_EQ(reshape(floats_like({4, 6}), {-1, 8}).shape(), (Shape{3, 8}));
  EXPECT_EQ(traced_type({floats({kAny, 6})},
                        [](const auto& in) {
                          return reshape(in[0], {-1, 2, 3});
                        }),
            floats({kAny, 2, 3}));
  EXPECT_EQ(traced_type({floats({kAny, 6})}, [](const auto& in) { return expand_dims(in[0], -1); }),
            floats({kAny, 6, 1}));
  EXPECT_EQ(traced_type({floats({kAny, 1})}, [](const auto& in) { return squeeze(in[0], 1); }),
            floats({kAny}));
}

TEST(OpTypes, GatherPutsTheIdsAxesInPlaceOfTheGatheredOne) {
  EXPECT_EQ(gather(floats_like({5, 7}), ids_like({2, 3}), 1).shape(), (Shape{5, 2, 3}));
  Variable table = make_variable("table", {100, 16});
  EXPECT_EQ(traced_type({ints({kAny, 2})}, [&](const auto& in) { return table.gather(in[0]); }),
            floats({kAny, 2, 16}));
}

TEST(OpTypes, InteractionsAndCombinersCountTheirRows) {
  EXPECT_EQ(dot_interaction(floats_like({8, 27, 16})).shape(), (Shape{8, 351}));
  EXPECT_EQ(combine_rows(floats_like({9, 4}), ids_like({4}), Combiner::kMean).shape(),
            (Shape{3, 4}));
}

struct Refusal {
  const char* name;
  std::function<void()> act;
  std::vector<std::string> says;
};

TEST(OpTypes, MisuseIsRefusedNamingTheOperationAndTheShapes) {
  Array a = floats_like({2, 3}), b = floats_like({4}), ids = ids_like({2}),
        text = Tensor::strings({1}, {"x"});
  Variable v = make_variable("v", {4, 3}), s = make_variable("s", {});
  UpdateRule sgd{RuleKind::kSgd, {}};
  const Refusal refusals[] = {
      {"broadcast", [&] { a + b; }, {"add", "float32[2, 3]", "float32[4]"}},
      {"dtypes", [&] { a + ids; }, {"add", "float32", "int64", "cast"}},
      {"float only", [&] { exp(ids); }, {"exp(int64[2])", "float32"}},
      {"logic", [&] { logical_and(a, a); }, {"logical_and", "bool"}},
      {"inner", [&] { matmul(a, a); }, {"matmul", "[2, 3]", "inner"}},
      {"rank", [&] { matmul(a, b); }, {"matmul", "rank"}},
      {"batch",
       [&] {
         batch_matmul(floats_like({2, 3, 4}), floats_like({3, 4, 5}));
       },
       {"batch_matmul", "batches"}},
      {"axis", [&] { reduce_sum(a, {2}); }, {"reduce_sum", "axis 2"}},
      {"axis twice",
       [&] {
         reduce_sum(a, {1, -1});
       },
       {"reduce_sum", "distinct"}},
      {"argmax", [&] { argmax(a, -3); }, {"argmax", "axis -3"}},
      {"reshape", [&] { reshape(a, {4}); }, {"reshape", "float32[2, 3]", "[4]"}},
      {"two -1",
       [&] {
         reshape(a, {-1, -1});
       },
       {"reshape", "-1"}},
      {"permutation",
       [&] {
         transpose(a, {0, 0});
       },
       {"transpose", "permutation"}},
      {"squeeze", [&] { squeeze(a, 0); }, {"squeeze", "not 1"}},
      {"concat",
       [&] {
         concat({a, floats_like({3, 4})}, 1);
       },
       {"concat", "float32[3, 4]"}},
      {"concat of nothing", [&] { concat({}, 0); }, {"concat", "no parts"}},
      {"stack",
       [&] {
         stack({a, b}, 0);
       },
       {"stack", "differ"}},
      {"slice", [&] { slice(a, 1, 2, 2); }, {"slice", "axis 1", "size 3"}},
      {"gather ids", [&] { gather(a, a); }, {"gather", "int32 or int64"}},
      {"gather scalar", [&] { gather(Array(1.0f), ids); }, {"gather", "axis 0"}},
      {"segments",
       [&] { unsorted_segment_sum(a, ids_like({5}), 3); },
       {"unsorted_segment_sum", "rows"}},
      {"depth", [&] { one_hot(ids, -1); }, {"one_hot", "-1"}},
      {"top k", [&] { top_k(a, 4); }, {"top_k", "the largest 4 of 3"}},
      {"top k of bools", [&] { top_k(equal(a, a), 1); }, {"top_k", "bool"}},
      {"top of targets", [&] { in_top_k(b, ids, 1); }, {"in_top_k", "float32[4]"}},
      {"along other rows",
       [&] {
         gather_along(a, ids_like({3, 1}), 1);
       },
       {"gather_along", "float32[2, 3]", "other axes than 1"}},
      {"along by floats", [&] { gather_along(a, a, 1); }, {"gather_along", "int32 or int64"}},
      {"cumsum", [&] { cumsum(a, 2); }, {"cumsum", "axis 2"}},
      {"paddings",
       [&] {
         pad(a, {{1, 1}}, 0);
       },
       {"pad", "1 paddings", "float32[2, 3]"}},
      {"padding by another dtype",
       [&] {
         pad_axis(a, 0, {1, 1}, true);
       },
       {"pad", "bool"}},
      {"cut too much",
       [&] {
         pad_axis(a, 1, {-2, -2}, 0);
       },
       {"pad", "the 3 elements of axis 1"}},
      {"tile", [&] { tile(a, {2}); }, {"tile", "1 multiples"}},
      {"tiles below none",
       [&] {
         tile(a, {2, -1});
       },
       {"tile", "-1"}},
      {"any of floats", [&] { reduce_any(a); }, {"reduce_any", "float32[2, 3]"}},
      {"xor of floats", [&] { logical_xor(a, a); }, {"logical_xor", "float32[2, 3]"}},
      {"dense splits", [&] { to_dense(a, ids_like({0}), 2, 0); }, {"to_dense", "row_splits"}},
      {"columns", [&] { to_dense(a, ids, -1, 0); }, {"to_dense", "-1 columns"}},
      {"lengths of rows", [&] { row_lengths(a); }, {"row_lengths", "float32[2, 3]"}},
      {"range", [&] { range(-1); }, {"range", "-1"}},
      {"splits",
       [&] { combine_rows(a, ids_like({0}), Combiner::kSum); },
       {"combine_rows", "row_splits"}},
      {"labels",
       [&] { sigmoid_cross_entropy_with_logits(a, b); },
       {"sigmoid_cross_entropy_with_logits", "float32[4]"}},
      {"sparse labels",
       [&] { sparse_softmax_cross_entropy_with_logits(a, a); },
       {"sparse_softmax_cross", "int64"}},
      {"interaction", [&] { dot_interaction(a); }, {"dot_interaction", "rank"}},
      {"hash", [&] { string_hash_bucket(ids, 4); }, {"string_hash_bucket", "string"}},
      {"buckets", [&] { string_hash_bucket(text, 0); }, {"string_hash_bucket", "bucket"}},
      {"cast", [&] { cast(text, DType::kFloat32); }, {"cast(string[1])"}},
      {"undefined", [&] { Array() + a; }, {"add", "without a value"}},
      {"assign", [&] { v.assign(a); }, {"\"v\"", "float32[4, 3]", "float32[2, 3]"}},
      {"rows",
       [&] {
         v.scatter_add(ids, floats_like({2, 4}));
       },
       {"\"v\"", "[2, 3]", "[2, 4]"}},
      {"scalar rows", [&] { s.scatter_add(ids, b); }, {"\"s\"", "no rows"}},
      {"rate",
       [&] {
         v.update(sgd, floats_like({4, 3}), b);
       },
       {"\"v\"", "learning rate", "float32[4]"}},
      {"integer rule",
       [&] { make_variable("n", {}, DType::kInt64).update(sgd, ids_like({}), 0.1f); },
       {"\"n\"", "sgd", "int64"}},
  };
  for (const auto& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    std::string message = message_of(refusal.act);
    for (const auto& part : refusal.says) EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(OpTypes, EveryOperationRefusesTheWrongNumberOfInputs) {
  for (const OpDef* op : all_ops()) {
    std::vector<TensorType> many(static_cast<std::size_t>(std::min(op->inputs_max + 1, 4)),
                                 floats({2}));
    if (static_cast<int>(many.size()) <= op->inputs_max) many.clear();
    EXPECT_THROW(infer_types(*op, {many, {}, {}}), InvalidArgumentError) << op->name;
  }
}

}  // namespace
}  // namespace cairn
