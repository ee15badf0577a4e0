// Graphs as bytes: what comes back is what was sent, and what is broken is refused.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "core/base/random.h"
#include "tests/core/graph_testing.h"
#include "tests/core/node_of.h"

namespace cairn {
namespace {

using testing::node_of;

using namespace testing;  // NOLINT
using ::testing::HasSubstr;

// A graph with every kind of attribute, effect and output.
Graph sample_graph() {
  Variable w = make_variable("w", {4, 2}), table = make_variable("table", {100, 2}),
           steps = make_variable("steps", {}, DType::kInt64);
  ElementSpec spec{{{"x", floats({kAny, 4})}, {"ids", ints({kAny})}, {"label", floats({kAny, 2})}},
                   "label"};
  return trace_function({floats({}), spec},
                        [&](const auto& in) {
                          auto [features, label] = std::get<Iterator>(in[1]).get_next();
                          // a statement of its own: w is variable 0 by every compiler's order
                          Array deep = matmul(features["x"], w);
                          Array logits =
                              check_numerics(deep + table.gather(features["ids"]), "logits");
                          logits = all_reduce(ReduceOp::kMean, {logits, label})[0];
                          Array loss = mean(sigmoid_cross_entropy_with_logits(label, logits)) +
                                       reduce_sum(square(w.read()), {0, 1});
                          UpdateRule adagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}};
                          for (auto& g : variable_gradients(loss)) {
                            if (g.is_sparse())
                              g.variable.update(adagrad, g.sparse, std::get<Array>(in[0]));
                            else
                              g.variable.update(adagrad, g.dense, std::get<Array>(in[0]));
                          }
                          steps.assign_add(std::int64_t{1});
                          Array names = Tensor::strings({2}, {"a", "bc"});
                          return Outputs{{"loss", loss}, {"bucket", string_hash_bucket(names, 7)}};
                        })
      .graph;
}

TEST(GraphWire, ComesBackAsItWasSent) {
  Graph graph = sample_graph();
  std::vector<std::byte> bytes = serialize(graph);
  Graph back = parse_graph(bytes);
  EXPECT_EQ(to_text(back), to_text(graph));
  EXPECT_EQ(serialize(back), bytes);
  EXPECT_EQ(back.variables, graph.variables);
  EXPECT_EQ(back.iterators, graph.iterators);
  EXPECT_EQ(back.output_names, graph.output_names);
}

TEST(GraphWire, SaysWhichVariablesAreMirrored) {
  Graph graph = sample_graph();
  graph.variables[1].mirrored = true;
  const Graph back = parse_graph(serialize(graph));
  EXPECT_EQ(back.variables, graph.variables);
  EXPECT_FALSE(back.variables[0].mirrored);
}

TEST(GraphWire, EqualFunctionsHaveEqualHashes) {
  Graph first = sample_graph(), second = sample_graph();
  EXPECT_EQ(content_hash(serialize(first)), content_hash(serialize(second)));
}

TEST(GraphWire, TheHashTellsOneChangedBitAndOneMoreByte) {
  std::vector<std::byte> bytes(100);
  GraphHash hash = content_hash(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    EXPECT_NE(content_hash(bytes), hash) << i;
    bytes[i] ^= std::byte{1};
  }
  bytes.push_back({});
  EXPECT_NE(content_hash(bytes), hash);
}

TEST(GraphWire, TheHashIsTheSameInEveryVersion) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 37; ++i) bytes.push_back(static_cast<std::byte>(i));
  std::string text;
  for (std::uint8_t byte : content_hash(bytes)) text += str(std::hex, byte >> 4, byte & 15);
  EXPECT_EQ(text, "1550350a9b2cf98455c270f922104d05");
}

TEST(GraphWire, AConstantTooLargeForAMessageIsRefusedWhenTraced) {
  Array large = Tensor::zeros(DType::kFloat32, {(64 << 20) / 4 + 1});
  EXPECT_THAT(message_of([&] { trace_function({}, [&](const auto&) { return large; }); }),
              HasSubstr("arguments"));
}

struct Breakage {
  const char* name;
  std::function<void(Graph&)> act;
  const char* says;
};

TEST(GraphVerification, BrokenGraphsAreRefusedNamingTheNode) {
  const Breakage breakages[] = {
      {"forward reference",
       [](Graph& g) {
         node_of(g, "matmul").inputs[0].node = static_cast<std::int32_t>(g.nodes.size()) - 1;
       },
       "stand before"},
      {"self reference",
       [](Graph& g) {
         g.nodes[1].inputs = {{1, 0}};
       },
       "node 1"},
      {"negative reference", [](Graph& g) { node_of(g, "matmul").inputs[0].node = -1; },
       "refers to node -1"},
      {"no such output", [](Graph& g) { node_of(g, "matmul").inputs[0].output = 17; }, "output 17"},
      {"too few inputs", [](Graph& g) { node_of(g, "matmul").inputs.pop_back(); }, "it takes 2"},
      {"wrong shape",
       [](Graph& g) {
         node_of(g, "matmul").outputs[0].shape = {kAny, 3};
       },
       "matmul"},
      {"wrong dtype", [](Graph& g) { node_of(g, "matmul").outputs[0].dtype = DType::kInt32; },
       "matmul"},
      {"too many outputs", [](Graph& g) { node_of(g, "matmul").outputs.push_back(floats({})); },
       "outputs"},
      {"no outputs", [](Graph& g) { node_of(g, "matmul").outputs.clear(); }, "outputs"},
      {"another operation", [](Graph& g) { node_of(g, "matmul").op = find_op("add"); },
       "attribute"},
      {"attribute of another type",
       [](Graph& g) { node_of(g, "matmul").attributes.set("transpose_a", 1.0); }, "another type"},
      {"unknown attribute", [](Graph& g) { node_of(g, "matmul").attributes.set("zebra", true); },
       "zebra"},
      {"missing attribute", [](Graph& g) { node_of(g, "matmul").attributes = {}; }, "missing"},
      {"no such variable",
       [](Graph& g) { node_of(g, "read_variable").attributes.set("variable", std::int64_t{9}); },
       "variable 9"},
      {"negative variable",
       [](Graph& g) { node_of(g, "update_variable").attributes.set("variable", std::int64_t{-1}); },
       "variable -1"},
      {"another variable",
       [](Graph& g) { node_of(g, "read_variable").attributes.set("variable", std::int64_t{1}); },
       "read_variable"},
      {"no such iterator",
       [](Graph& g) { node_of(g, "iterator_next").attributes.set("iterator", std::int64_t{1}); },
       "iterator 1"},
      {"no such argument",
       [](Graph& g) { node_of(g, "argument").attributes.set("index", std::int64_t{1}); },
       "index 1"},
      {"rule's constant",
       [](Graph& g) {
         node_of(g, "update_variable")
             .attributes.set("rule", UpdateRule{RuleKind::kAdagrad, {NAN}});
       },
       "update_variable"},
      {"rule without slots",
       [](Graph& g) {
         node_of(g, "update_variable").attributes.set("rule", UpdateRule{RuleKind::kAssign, {}});
       },
       "inputs"},
      {"sparse for dense",
       [](Graph& g) {
         auto& n = node_of(g, "update_variable");
         n.attributes.set("sparse", !n.attributes.get<bool>("sparse"));
       },
       "update_variable"},
      {"unknown reduction",
       [](Graph& g) { node_of(g, "all_reduce").attributes.set("reduction", std::string("max")); },
       "no reduction \"max\""},
      {"reduction that is no text",
       [](Graph& g) { node_of(g, "all_reduce").attributes.set("reduction", std::int64_t{0}); },
       "another type"},
      {"all-reduce of nothing", [](Graph& g) { node_of(g, "all_reduce").inputs.clear(); },
       "it takes 1 or more"},
      {"all-reduce with a result too few",
       [](Graph& g) { node_of(g, "all_reduce").outputs.pop_back(); }, "all_reduce"},
      {"mean of integers",
       [](Graph& g) {
         const Node& ids = node_of(g, "iterator_next");
         const auto place = static_cast<std::int32_t>(&ids - g.nodes.data());
         node_of(g, "all_reduce").inputs[1] = {place, 1};
       },
       "float32 is wanted"},
      {"output nowhere", [](Graph& g) { g.outputs[0].node = 1 << 20; }, "outputs"},
      {"names missing", [](Graph& g) { g.output_names.pop_back(); }, "names"},
      {"variable of unknown shape",
       [](Graph& g) {
         g.variables[0].type.shape = {kAny, 2};
       },
       "\"w\""},
      {"variable of strings", [](Graph& g) { g.variables[0].type.dtype = DType::kString; },
       "\"w\""},
      {"two variables of a name", [](Graph& g) { g.variables[1].name = "w"; }, "twice"},
      {"absurd variable",
       [](Graph& g) {
         g.variables[0].type.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       },
       "too large"},
      {"absurd argument", [](Graph& g) { g.arguments[0].shape = {std::int64_t{1} << 60}; },
       "too large"},
      {"absurd rank",
       [](Graph& g) { g.arguments[0].shape = Shape(std::vector<std::int64_t>(17, 1)); }, "rank 17"},
      {"label nowhere", [](Graph& g) { g.iterators[0].label = "labl"; }, "label"},
  };
  for (const auto& breakage : breakages) {
    SCOPED_TRACE(breakage.name);
    Graph graph = sample_graph();
    breakage.act(graph);
    EXPECT_THAT(message_of([&] { verify(graph); }), HasSubstr(breakage.says));
    EXPECT_THROW(parse_graph(serialize(graph)), InvalidArgumentError);
  }
}

TEST(GraphVerification, TruncatedBytesAreRefused) {
  std::vector<std::byte> bytes = serialize(sample_graph());
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 16)
    EXPECT_THROW(parse_graph({bytes.data(), length}), InvalidArgumentError) << length;
}

// Whatever a flipped bit makes of the bytes: a graph that verifies, or an InvalidArgument; no crash
// and no absurd allocation.
TEST(GraphVerification, MutatedBytesNeverDoWorseThanARefusal) {
  const std::vector<std::byte> bytes = serialize(sample_graph());
  Random random(2026);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> broken = bytes;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n)
      broken[random.below(broken.size())] ^= static_cast<std::byte>(1u << random.below(8));
    try {
      verify(parse_graph(broken));
    } catch (const InvalidArgumentError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace cairn
