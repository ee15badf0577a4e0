// Parts of a graph take the columns that they need, and give what the whole gives.
#include "model/saved/graph_part.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;

// Columns b and c and the ragged r, and outputs of some of them.
Graph graph() {
  OneDeviceStrategy strategy{1};
  const auto scope = strategy.scope();
  constexpr std::int64_t kAny = Shape::kUnknown;
  const ElementSpec input{{{"a", {DType::kFloat32, {kAny}}},
                           {"b", {DType::kFloat32, {kAny}}},
                           {"c", {DType::kFloat32, {kAny}}},
                           {"r", {DType::kFloat32, {kAny}}},
                           {"r/row_splits", {DType::kInt64, {kAny}}}},
                          ""};
  return trace(
             [](const std::vector<TraceArgument>& arguments) {
               const Features in = std::get<Iterator>(arguments[0]).get_next().features;
               return Outputs{{"all", in["a"] + in["b"] * in["c"]},
                              {"last", in["c"] * 2.0f},
                              {"values", in.values("r") + 1.0f},
                              {"constant", Array(1.0f)}};
             },
             {SignatureEntry(input)})
      .graph;
}

std::vector<std::string> names(const Graph& of) {
  std::vector<std::string> all;
  for (const ColumnSpec& column : of.iterators.front().columns) all.push_back(column.name);
  return all;
}

TEST(GraphPart, TakesTheColumnsThatItsOutputsNeed) {
  const Graph whole = graph();
  const GraphPart last = part_of(whole, {1});
  EXPECT_THAT(names(last.graph), ElementsAre("c"));
  EXPECT_THAT(last.columns, ElementsAre(2u));
  EXPECT_THAT(last.graph.output_names, ElementsAre("last"));
  EXPECT_LT(last.graph.nodes.size(), whole.nodes.size());
  const GraphPart both = part_of(whole, {1, 0});
  EXPECT_THAT(names(both.graph), ElementsAre("a", "b", "c"));
  EXPECT_THAT(both.graph.output_names, ElementsAre("last", "all"));
}

TEST(GraphPart, KeepsBothHalvesOfARaggedColumn) {
  EXPECT_THAT(names(part_of(graph(), {2}).graph), ElementsAre("r", "r/row_splits"));
}

TEST(GraphPart, OfAPartIsThatOfTheWhole) {
  const GraphPart part = part_of(part_of(graph(), {0, 1}).graph, {1});
  EXPECT_EQ(serialize(part.graph), serialize(part_of(graph(), {1}).graph));
}

TEST(GraphPart, RefusesOutputsThatDependOnNoColumn) {
  EXPECT_THROW(part_of(graph(), {3}), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
