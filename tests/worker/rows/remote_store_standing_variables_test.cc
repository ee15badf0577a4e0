// Dense variables that are not written: RemoteStore does not have them sent again.
#include "tests/worker/rows/remote_store_fixture.h"

namespace cairn::worker {
namespace {

class StandingVariables : public RemoteStoreTest {
 protected:
  // Pulls once more; the shards whose values came, once a part.
  std::vector<ShardId> brought(std::vector<Read>& reads) {
    RemoteStep step(*store);
    return brought(step, reads);
  }
  std::vector<ShardId> brought(RemoteStep& step, std::vector<Read>& reads) {
    const std::size_t before = cluster->asked.size();
    EXPECT_EQ(pull(step, reads), "");
    std::vector<ShardId> shards;
    for (std::size_t i = before; i < cluster->asked.size(); ++i)
      shards.insert(shards.end(), cluster->asked[i].parts.size(), cluster->asked[i].shard);
    return shards;
  }
  // Until copies are at hand.
  void stand_still(std::vector<Read>& reads) {
    for (int i = 0; i < 2; ++i) brought(reads);
    ASSERT_TRUE(brought(reads).empty());
  }
  inline static const UpdateRule kPlain{RuleKind::kSgd, {}};
};

TEST_F(StandingVariables, AVariableThatStoodStillForTwoPullsIsNotSentAgain) {
  use(2, {{"w", {6, 3}}});
  std::vector<Read> reads{{0, {}, {}}};
  for (const std::size_t parts : {2u, 2u, 0u, 0u}) {
    EXPECT_EQ(brought(reads).size(), parts);
    EXPECT_EQ(floats_of(reads[0].value), expected(0, {0, 1, 2, 3, 4, 5}, 3));
    EXPECT_EQ(reads[0].value.shape(), Shape({6, 3}));
  }
}

TEST_F(StandingVariables, OfAVariableThatStoodStillOnlyThePartThatWasWrittenIsSent) {
  use(2, {{"w", {4, 2}}});
  std::vector<Read> reads{{0, {}, {}}};
  stand_still(reads);
  {
    RemoteStep step(*store);
    std::vector<Update> updates{{0, kPlain, 1, ids_tensor({3}), floats_tensor({1, 2}, {5, 7})}};
    ASSERT_EQ(push(step, updates), "");
  }
  EXPECT_EQ(brought(reads), (std::vector<ShardId>{1}));
  std::vector<float> now = expected(0, {0, 1, 2, 3}, 2);
  now[6] -= 5;
  now[7] -= 7;
  EXPECT_EQ(floats_of(reads[0].value), now);
}

TEST_F(StandingVariables, RowsReadBesideAVariableThatStandsStillAreSent) {
  use(1, {{"table", {8, 2}}, {"w", {3}}});
  std::vector<Read> reads{{1, {}, {}}, {0, ids_tensor({2, 5}), {}}};
  for (int i = 0; i < 3; ++i) {
    RemoteStep step(*store);
    ASSERT_EQ(pull(step, reads), "");
    EXPECT_EQ(floats_of(reads[0].value), expected(1, {0, 1, 2}, 1));
    EXPECT_EQ(floats_of(reads[1].value), expected(0, {2, 5}, 2));
  }
  ASSERT_EQ(cluster->asked.back().parts.size(), 1u);
  EXPECT_EQ(cluster->asked.back().parts[0].rows.variable, 0u);
}

// A value that was read stays the same while later pulls find others.
TEST_F(StandingVariables, ACopyThatSomebodyReadsDoesNotChange) {
  use(1, {{"w", {2}}});
  std::vector<Read> reads{{0, {}, {}}};
  stand_still(reads);
  const Tensor copy = reads[0].value;
  RemoteStep step(*store);
  std::vector<Update> updates{{0, kPlain, 1, {}, floats_tensor({2}, {10, 20})}};
  ASSERT_EQ(push(step, updates), "");
  for (int i = 0; i < 3; ++i) {
    RemoteStep later(*store);
    ASSERT_EQ(pull(later, reads), "");
    EXPECT_EQ(floats_of(reads[0].value),
              (std::vector<float>{initial_value(0, 0, 0) - 10, initial_value(0, 1, 0) - 20}));
  }
  EXPECT_EQ(floats_of(copy), expected(0, {0, 1}, 1));
}

TEST_F(StandingVariables, CopiesOfAShardThatWasReplacedAreNotUsed) {
  use(1, {{"w", {2}}});
  std::vector<Read> reads{{0, {}, {}}};
  stand_still(reads);
  cluster->shard(0).version.lineage.number += 1;
  cluster->shard(0).rows.at({0, 0}) = {-1, -2};
  RemoteStep step(*store);
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(floats_of(reads[0].value), (std::vector<float>{-1, -2}));
}

TEST_F(StandingVariables, CopiesOfAnEarlierLayoutAreNotUsed) {
  use(1, {{"w", {2}}});
  std::vector<Read> reads{{0, {}, {}}};
  stand_still(reads);
  store->set_layout(cluster->layout);
  EXPECT_EQ(brought(reads).size(), 1u);
}

// In the new layout its numbers may mean other variables.
TEST_F(StandingVariables, AStepOfAnEarlierLayoutLeavesNoCopiesAndUsesNone) {
  use(1, {{"w", {2}}});
  std::vector<Read> reads{{0, {}, {}}};
  RemoteStep first(*store), second(*store), last(*store);
  store->set_layout(cluster->layout);
  brought(first, reads);
  brought(second, reads);
  EXPECT_EQ(brought(reads).size(), 1u);
  stand_still(reads);
  EXPECT_EQ(brought(last, reads).size(), 1u);
}

}  // namespace
}  // namespace cairn::worker
