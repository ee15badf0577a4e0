// MMoE and two towers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/exec/local_runtime.h"
#include "core/graph/ops.h"
#include "nn/layers/mmoe.h"
#include "nn/layers/sequential.h"
#include "nn/layers/two_tower.h"
#include "tests/nn/numeric_gradient.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

class RecommenderLayers : public ::testing::Test {
 protected:
  LocalRuntime runtime_;
  Scope scope_{runtime_};
};

TEST_F(RecommenderLayers, EachTaskMixesTheExpertsByItsOwnGate) {
  MMoE layer({.tasks = 2, .experts = 3, .expert_units = {4, 2}});
  const Array x = varied({5, 3});
  const std::vector<Array> tasks = layer(x);
  ASSERT_EQ(tasks.size(), 2u);
  // Variables: of each expert two kernels and two biases, then the gates' kernels.
  const auto variables = layer.variables();
  ASSERT_EQ(variables.size(), 3u * 4 + 2);
  EXPECT_EQ(variables[0].name(), "mmoe/expert_0/dense_0/kernel");
  for (std::size_t task : {0, 1}) {
    const Array gate = softmax(matmul(x, variables[12 + task].read()));
    EXPECT_EQ(variables[12 + task].name(), task == 0 ? "mmoe/gate_0/kernel" : "mmoe/gate_1/kernel");
    Array want = Array(0.0f);
    for (int e = 0; e < 3; ++e) {
      const auto read = [&](int i) { return variables[4 * e + i].read(); };
      const Array hidden = relu(matmul(x, read(0)) + read(1));
      want = want + slice(gate, 1, e, 1) * relu(matmul(hidden, read(2)) + read(3));
    }
    EXPECT_EQ(tasks[task].shape(), (Shape{5, 2}));
    expect_close(tasks[task], numbers(want), 1e-5f);
  }
}

TEST_F(RecommenderLayers, TasksMayHaveTowersOfTheirOwn) {
  MMoE layer(
      {.tasks = 2, .experts = 2, .expert_units = {4}, .tower_units = {3, 1}, .name = "heads"});
  const std::vector<Array> tasks = layer(varied({5, 3}));
  EXPECT_EQ(tasks[1].shape(), (Shape{5, 1}));
  EXPECT_EQ(layer.variables().back().name(), "heads/tower_1/dense_1/bias");
  EXPECT_THROW(MMoE({.tasks = 0, .experts = 2, .expert_units = {4}}), InvalidArgumentError);
  EXPECT_THROW(MMoE({.tasks = 1, .experts = 2}), InvalidArgumentError);
}

Array doubled(const Array& x) { return x * 2.0f; }
Array unchanged(const Array& x) { return x; }

TEST_F(RecommenderLayers, TwoTowersScoreEveryQueryWithEveryCandidate) {
  TwoTower towers({.query = doubled, .candidate = unchanged, .temperature = 0.5f});
  const Array q = floats({2, 2}, {1, 0, 1, 1}), c = floats({2, 2}, {3, 4, 5, 6});
  expect_close(towers(q, c), {12, 20, 28, 44});
  expect_close(towers.embed_query(q), {2, 0, 2, 2});
  TwoTower cosines({.query = doubled, .candidate = unchanged, .normalize = true});
  expect_close(cosines(q, floats({2, 2}, {0, 7, 0, 0})), {0, 0, std::sqrt(0.5f), 0}, 1e-5f);
}

TEST_F(RecommenderLayers, TwoTowersNameTheirLayersTogether) {
  const Dense last({.units = 2});
  TwoTower towers({.query = Sequential({Dense({.units = 3}), relu, last}),
                   .candidate = Sequential({Dense({.units = 3}), last})});
  towers(varied({4, 5}), varied({4, 6}));
  std::vector<std::string> names;
  for (const Variable& variable : towers.variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ::testing::ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel",
                                            "dense_1/bias", "dense_2/kernel", "dense_2/bias"));
}

TEST_F(RecommenderLayers, TwoTowersMustMeetInOneWidth) {
  TwoTower towers({.query = Dense({.units = 2}), .candidate = Dense({.units = 3})});
  EXPECT_THROW(towers(varied({2, 4}), varied({2, 4})), InvalidArgumentError);
  EXPECT_THROW(TwoTower({.query = doubled, .candidate = unchanged, .temperature = 0}),
               InvalidArgumentError);
  TwoTower flat(
      {.query = [](const Array& x) { return reduce_sum(x, {1}); }, .candidate = unchanged});
  EXPECT_THROW(flat.embed_query(varied({2, 4})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::nn
