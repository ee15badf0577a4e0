// Which shares of updates become all-reduces, and which stay as they are.
#include "core/graph/reduced_shares.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/graph/op_def.h"
#include "tests/core/graph_testing.h"
#include "tests/core/sharing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

Variable of(Sharing& runtime, const std::string& name, const Shape& shape) {
  return Variable(make_variable(name, shape).shared_spec(), &runtime);
}

const Node& update_of(const Graph& graph) {
  return *std::ranges::find_if(graph.nodes,
                               [](const Node& node) { return node.op->name == "update_variable"; });
}

TEST(ReducedShares, AreThoseOfDenseSumsAndTheUpdateGetsTheSumOfAll) {
  Sharing sums(Aggregation::kSum);
  Variable w = of(sums, "w", {2, 3});
  const Graph graph = with_reduced_shares(trace_function({floats({2, 3})}, [&](const auto& in) {
                                            const Array share = tanh(arg(in, 0));
                                            w.assign_add(share);
                                            return share;
                                          }).graph);
  EXPECT_NO_THROW(verify(graph));
  ASSERT_EQ(count_ops(graph, "all_reduce"), 1);
  const Node& update = update_of(graph);
  EXPECT_EQ(graph.nodes[static_cast<std::size_t>(update.inputs[0].node)].op->name, "all_reduce");
  // The function still returns the replica's own value.
  EXPECT_EQ(graph.nodes[static_cast<std::size_t>(graph.outputs[0].node)].op->name, "tanh");
}

TEST(ReducedShares, AreNotMeansRowsOrAFewElements) {
  Sharing means(Aggregation::kMean), sums(Aggregation::kSum);
  Variable mean = of(means, "mean", {2, 3}), few = of(sums, "few", {4}),
           table = of(sums, "table", {2, 3});
  const ConcreteFunction function =
      trace_function({floats({2, 3}), floats({4}), ints({2})}, [&](const auto& in) {
        mean.assign_add(arg(in, 0));
        few.assign_add(arg(in, 1));
        table.scatter_add(arg(in, 2), arg(in, 0));
        return std::vector<Array>{};
      });
  EXPECT_EQ(serialize(with_reduced_shares(function.graph)), serialize(function.graph));
}

}  // namespace
}  // namespace cairn
