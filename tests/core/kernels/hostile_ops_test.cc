// Graphs by a sender that lies consistently: the attributes and inputs of operations changed at
// will, the types adjusted to match. What verification lets through must run to an end or raise an
// Error, whatever it computes.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <new>

#include "core/base/random.h"
#include "core/exec/executor.h"
#include "core/graph/ops/ops_wait.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"
#include "tests/core/node_of.h"
#include "tests/effort.h"

namespace cairn {
namespace {

using testing::node_of;

using namespace testing;  // NOLINT
using ::testing::HasSubstr;
using Arrays = std::vector<Array>;
using Int = std::int64_t;
using Ints = std::vector<Int>;

constexpr Int kHuge = Int{1} << 62, kLeast = std::numeric_limits<Int>::min(),
              kMost = std::numeric_limits<Int>::max();

// The arguments of the sample graph: images, filter, a table, rows for it, ids, row splits.
std::vector<Tensor> sample_arguments() {
  Random random(5);
  auto floats = [&](Shape shape) {
    Tensor made(DType::kFloat32, std::move(shape));
    for (float& x : made.mutable_values<float>())
      x = uniform_float(static_cast<std::uint32_t>(random.bits())) - 0.5f;
    return made;
  };
  return {floats({2, 5, 4, 3}), floats({3, 2, 3, 2}), floats({6, 3}),
          floats({4, 3}),       ids_of({5, 0, 3, 0}), ids_of({0, 1, 1, 4})};
}

Array table_row(const Array& table) { return squeeze(slice(table, 0, 2, 1), 0); }

// Every operation that has attributes, and every one that scatters, normalises or slides, with its
// gradient.
Outputs sample_body(const Arrays& in) {
  const Array &image = in[0], &filter = in[1], &table = in[2], &rows = in[3], &ids = in[4],
              &splits = in[5];
  Arrays made = {conv2d(image, filter, {{2, 1}, Padding::kSame, {1, 2}}),
                 conv2d(image, filter),
                 max_pool2d(image, {{2, 3}, {1, 2}}),
                 avg_pool2d(image, {{3, 2}, {2, 1}, Padding::kSame}),
                 layer_norm(table, table_row(table), table_row(table)),
                 batch_norm(image, table_row(table), table_row(table)).y};
  for (auto scatter : {scatter_add, scatter_sub, scatter_max, scatter_min, scatter_update})
    made.push_back(scatter(table, ids, rows));
  for (auto reduce : {reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod})
    made.push_back(reduce(image, {0, 2}, true));
  made.push_back(gather(table, ids));
  made.push_back(unsorted_segment_sum(rows, ids, 6));
  made.push_back(top_k(table, 2).values);
  made.push_back(gather_along(rows, expand_dims(ids - ids, 1), 1));
  made.push_back(cumsum(image, 1, {.exclusive = true}));
  made.push_back(pad(rows, {{1, -1}, {0, 2}}, 0.5f));
  made.push_back(to_dense(rows, splits, 3, 0.5f));
  made.push_back(wait_for(rows, 0));
  made.push_back(combine_rows(rows, splits, Combiner::kMean));
  made.push_back(slice(rows, 0, 1, 2));
  made.push_back(concat({table, rows}, 0));
  made.push_back(stack({rows, rows}, 1));
  made.push_back(transpose(image, {3, 1, 0, 2}));
  made.push_back(reshape(rows, {-1, 2}));
  made.push_back(matmul(table, rows, false, true));
  made.push_back(
      sparse_softmax_cross_entropy_with_logits(slice(splits, 0, 0, 1), slice(rows, 0, 0, 1)));
  Array loss = 0.0f;
  for (const Array& one : made) loss = loss + sum(square(one));
  Outputs outputs;
  for (const Array& one : grad(loss, {image, filter, table, rows})) outputs.emplace_back("", one);
  for (const Array& one :
       {random_uniform({3, 2}), random_normal_like(rows), random_truncated_normal({4}),
        dropout(rows, 0.5f), one_hot(ids, 7), random_integers({5}, -3, 9), argmax(rows, 1),
        string_hash_bucket(Tensor::strings({2}, {"a", "b"}), 7), loss})
    outputs.emplace_back("", one);
  return outputs;
}

Graph graph_of_many_ops() {
  std::vector<SignatureEntry> signature;
  for (const Tensor& argument : sample_arguments()) signature.emplace_back(argument.type());
  return trace_function(signature,
                        [](const auto& in) {
                          Arrays arrays;
                          for (const auto& one : in) arrays.push_back(std::get<Array>(one));
                          return sample_body(arrays);
                        })
      .graph;
}

// The outputs' types as the rules infer them now. InvalidArgument: a rule refuses.
void retype(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (node.op->effect != Effect::kNone) continue;
    std::vector<TensorType> inputs;
    for (ValueRef input : node.inputs) inputs.push_back(graph.type(input));
    node.outputs = infer_types(*node.op, {inputs, node.attributes, {}});
  }
}

enum class Verdict : std::uint8_t { kRefused, kRaised, kRan };

Verdict judge(Graph graph) {
  try {
    retype(graph);
    graph = parse_graph(serialize(graph));
  } catch (const InvalidArgumentError&) {
    return Verdict::kRefused;
  }
  try {
    Workspace workspace;
    LocalStore store;
    run(make_plan(std::move(graph), {}), workspace, store, {}, sample_arguments(), {});
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
    return Verdict::kRaised;
  } catch (const std::bad_alloc&) {
    return Verdict::kRaised;
  }
  return Verdict::kRan;
}

// Other values of the same type that could stand in place of `value`.
std::vector<AttributeValue> hostile_values(const AttributeValue& value) {
  std::vector<AttributeValue> all;
  const Ints numbers = {-2,           -1,    0,      1,    2, 3, 7, (Int{1} << 20) + 1,
                        Int{1} << 31, kHuge, kLeast, kMost};
  if (std::holds_alternative<Int>(value)) all.insert(all.end(), numbers.begin(), numbers.end());
  if (std::holds_alternative<double>(value))
    for (double x :
         {-1.0, 0.0, 1e300, -1e300, std::nan(""), std::numeric_limits<double>::infinity()})
      all.emplace_back(x);
  if (const bool* flag = std::get_if<bool>(&value)) all.emplace_back(!*flag);
  if (std::holds_alternative<std::string>(value))
    for (const char* text : {"", "SAME", "VALID", "same", "FULL"})
      all.emplace_back(std::string(text));
  if (const Ints* list = std::get_if<Ints>(&value)) {
    for (const Ints& other : {Ints{}, Ints{1}, Ints(17, 1), Ints(3, kMost)})
      all.emplace_back(other);
    for (std::size_t i = 0; i < list->size(); ++i)
      for (Int number : numbers) {
        Ints changed = *list;
        changed[i] = number;
        all.emplace_back(changed);
      }
  }
  return all;
}

TEST(HostileOperations, AttributesOfAnyValueAreRefusedOrRun) {
  const Graph graph = graph_of_many_ops();
  ASSERT_EQ(judge(graph), Verdict::kRan);
  constexpr int kNodesEach = 2;  // of an operation and attribute
  std::map<std::string, int> tried;
  int refused = 0, ran = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op->effect != Effect::kNone) continue;
    for (const auto& [name, value] : graph.nodes[i].attributes.entries()) {
      if (++tried[str(graph.nodes[i].op->name, " ", name)] > kNodesEach) continue;
      for (const AttributeValue& hostile : hostile_values(value)) {
        SCOPED_TRACE(str("node ", i, ", ", graph.nodes[i].op->name, ", attribute ", name));
        Graph broken = graph;
        broken.nodes[i].attributes.set(name, hostile);
        Verdict verdict = judge(std::move(broken));
        refused += verdict == Verdict::kRefused;
        ran += verdict == Verdict::kRan;
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(ran, 100);
}

TEST(HostileOperations, InputsFromAnywhereAreRefusedOrRun) {
  const Graph graph = graph_of_many_ops();
  Random random(2026);
  int refused = 0, past_verification = 0;
  for (std::uint64_t round = 0; round < effort(1000); ++round) {
    SCOPED_TRACE(str("round ", round));
    Graph broken = graph;
    std::size_t i = 1 + random.below(broken.nodes.size() - 1);
    if (broken.nodes[i].inputs.empty()) continue;
    auto from = static_cast<std::int32_t>(random.below(i));
    auto output = static_cast<std::int32_t>(
        random.below(broken.nodes[static_cast<std::size_t>(from)].outputs.size()));
    broken.nodes[i].inputs[random.below(broken.nodes[i].inputs.size())] = {from, output};
    Verdict verdict = judge(std::move(broken));
    refused += verdict == Verdict::kRefused;
    past_verification += verdict != Verdict::kRefused;
  }
  EXPECT_GT(refused, static_cast<int>(effort(250)));
  EXPECT_GT(past_verification, static_cast<int>(effort(75)));
}

// ---- by name ----

struct WrongAttribute {
  const char* op;
  const char* attribute;
  AttributeValue value;
  const char* says;
};

TEST(HostileOperations, MalformedAttributesAreRefusedNamingTheNumber) {
  const WrongAttribute breakages[] = {
      {"conv2d", "strides", Ints{0, 1}, "stride or dilation of 0"},
      {"conv2d", "strides", Ints{1, -1}, "of -1"},
      {"conv2d", "strides", Ints{1}, "\"strides\" has 1 numbers"},
      {"conv2d", "strides", Ints{kHuge, 1}, "stride or dilation of"},
      {"conv2d", "dilations", Ints{0, 1}, "of 0"},
      {"conv2d", "dilations", Ints{1, kMost}, "stride or dilation of"},
      {"conv2d", "dilations", Ints{1, 1, 1}, "\"dilations\" has 3 numbers"},
      {"conv2d", "padding", std::string("FULL"), "\"FULL\" is neither SAME nor VALID"},
      {"conv2d_grad_input", "strides", Ints{-3, 1}, "of -3"},
      {"conv2d_grad_input", "padding", std::string(), "neither SAME nor VALID"},
      {"conv2d_grad_filter", "dilations", Ints{1, 0}, "of 0"},
      {"conv2d_grad_filter", "strides", Ints{}, "\"strides\" has 0 numbers"},
      {"max_pool2d", "window", Ints{0, 1}, "of 0"},
      {"max_pool2d", "window", Ints{9, 1}, "reaches over 9 does not fit into 5"},
      {"max_pool2d", "strides", Ints{1, 0}, "of 0"},
      {"max_pool2d", "window", Ints{-1, 1}, "of -1"},
      {"max_pool2d_grad", "window", Ints{kHuge, 1}, "a window's size"},
      {"avg_pool2d", "window", Ints{1, 1, 1}, "\"window\" has 3 numbers"},
      {"avg_pool2d", "padding", std::string("same"), "neither SAME nor VALID"},
      {"avg_pool2d_grad", "strides", Ints{0, 0}, "of 0"},
      {"layer_norm", "epsilon", -1e-3, "epsilon is -0.001"},
      {"layer_norm_grad", "epsilon", std::nan(""), "epsilon is"},
      {"batch_norm", "epsilon", std::numeric_limits<double>::infinity(), "epsilon is inf"},
      {"batch_norm_grad", "epsilon", -1.0, "epsilon is -1"},
      {"reduce_prod", "axes", Ints{4}, "axis 4"},
      {"reduce_prod", "axes", Ints{0, 0}, "distinct"},
      {"reduce_prod_grad", "axes", Ints{-1}, "axis -1"},
      {"random_uniform", "shape", Ints{-1}, "a dimension of -1"},
      {"random_uniform", "shape", Ints{kMost, kMost}, "too large"},
      {"random_uniform", "shape", Ints{Int{1} << 31}, "at most 1073741824 elements"},
      {"random_uniform", "shape", Ints(17, 1), "rank 17"},
      {"random_uniform", "low", 2.0, "no numbers lie in [2, 1)"},
      {"random_uniform", "high", std::nan(""), "no numbers"},
      {"random_normal", "stddev", -1.0, "a deviation of -1"},
      {"random_normal", "shape", Ints{4, 3}, "both a shape and an array"},
      {"random_truncated_normal", "mean", std::numeric_limits<double>::infinity(), "a mean of inf"},
      {"random_truncated_normal", "shape", Ints{1 << 16, 1 << 16}, "at most 1073741824 elements"},
      {"random_integers", "high", Int{-3}, "no integers lie in [-3, -3)"},
      {"random_integers", "low", kMost, "no integers"},
      {"one_hot", "depth", kHuge, "too large"},
      {"one_hot", "depth", Int{1} << 31, "at most 1073741824 elements"},
      {"top_k", "k", Int{-1}, "the largest -1"},
      {"top_k", "k", kHuge, "of 3 elements"},
      {"gather_along", "axis", Int{-1}, "axis -1"},
      {"gather_along", "axis", Int{0}, "other axes than 0"},
      {"gather_along_grad", "axis", Int{2}, "axis 2"},
      {"cumsum", "axis", kMost, "axis"},
      {"pad", "before", kLeast, "a padding of"},
      {"pad", "after", kHuge, "a padding of"},
      {"pad", "before", Int{1} << 40, "at most 1073741824 elements"},
      {"pad", "before", Int{-9}, "cut more than the 4 elements"},
      {"to_dense", "columns", Int{-1}, "-1 columns"},
      {"to_dense", "columns", kHuge, "too large"},
      {"to_dense", "columns", Int{1} << 30, "at most 1073741824 elements"},
      {"to_dense_grad", "columns", Int{7}, "does not have the shape"},
      {"unsorted_segment_sum", "segments", kMost, "too large"},
      {"unsorted_segment_sum", "segments", Int{1} << 30, "at most 1073741824 elements"},
  };
  for (const WrongAttribute& breakage : breakages) {
    SCOPED_TRACE(str(breakage.op, " ", breakage.attribute));
    Graph graph = graph_of_many_ops();
    node_of(graph, breakage.op).attributes.set(breakage.attribute, breakage.value);
    EXPECT_THAT(message_of([&] { parse_graph(serialize(graph)); }), HasSubstr(breakage.says));
  }
}

// Sizes that are known only when run are looked at then.
TEST(HostileOperations, ValuesThatGrowPastEveryMachineAreRefusedWhenRun) {
  ConcreteFunction function =
      trace_function({floats({kAny}), ints({kAny, kAny})}, [](const auto& in) {
        Array x = std::get<Array>(in[0]);
        // each makes the value 1024 times as large
        for (int i = 0; i < 8; ++i) x = gather(x, std::get<Array>(in[1]));
        return sum(x);
      });
  Workspace workspace;
  LocalStore store;
  std::vector<Tensor> inputs = {Tensor::zeros(DType::kFloat32, {1}),
                                Tensor::zeros(DType::kInt64, {1024, 1024})};
  auto act = [&] {
    run(make_plan(parse_graph(function.bytes), {}), workspace, store, {}, inputs, {});
  };
  EXPECT_THAT(message_of(act), HasSubstr("too large"));
}

TEST(HostileOperations, ManyLargeValuesAtOnceAreRefusedBeforeTheirSizesOverflow) {
  ConcreteFunction function = trace_function({floats({kAny, 1})}, [](const auto& in) {
    Arrays all;
    Array x = std::get<Array>(in[0]);
    for (int i = 0; i < 64; ++i)
      all.push_back(matmul(x, square(reshape(x, {1, -1})) + static_cast<float>(i)));
    Array total = reduce_max(all[0]);
    for (const Array& one : all) total = total + reduce_max(one);
    return total;
  });
  Workspace workspace;
  LocalStore store;
  auto act = [&] {
    run(make_plan(parse_graph(function.bytes), {}), workspace, store, {},
        {Tensor::zeros(DType::kFloat32, {1 << 21, 1})}, {});
  };
  EXPECT_THAT(message_of<ResourceExhaustedError>(act), HasSubstr("no memory"));
}

}  // namespace
}  // namespace cairn
