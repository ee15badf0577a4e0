#include "coordinator/cluster/variable_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

// One of each of n ps.
std::vector<ShardLayout> shards(std::uint32_t n) {
  std::vector<ShardLayout> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back({.primary = {i, "", 1, 1}});
  return all;
}
VariableSpec variable(std::string name, Shape shape) {
  return {.name = std::move(name), .shape = std::move(shape)};
}

TEST(Registry, RoundRobinCountsVariablesAndParts) {
  VariableRegistry registry(
      {.partitioner = FixedShardsPartitioner(2), .placement = Placement::kRoundRobin}, shards(3));
  registry.create(variable("a", {4, 1}));
  registry.create(variable("b", {4, 1}));
  auto layout = registry.layout();
  EXPECT_THAT(layout->variables[0].parts, ::testing::ElementsAre(Part{0, {0, 2}}, Part{1, {2, 4}}));
  EXPECT_THAT(layout->variables[1].parts, ::testing::ElementsAre(Part{2, {0, 2}}, Part{0, {2, 4}}));
}

TEST(Registry, SizeAwarePlacementEvensOutBytes) {
  VariableRegistry registry({}, shards(2));
  registry.create(variable("large", {1000, 8}));
  for (int i = 0; i < 5; ++i) registry.create(variable("small", {100, 8}));
  auto layout = registry.layout();
  EXPECT_EQ(layout->variables[0].parts[0].shard, 0u);
  for (int i = 1; i <= 5; ++i)
    EXPECT_EQ(layout->variables[static_cast<std::size_t>(i)].parts[0].shard, 1u);
}

TEST(Registry, ASecondVariableOfANameGetsANumber) {
  VariableRegistry registry({}, shards(1));
  EXPECT_EQ(registry.create(variable("w", {1}))->name, "w");
  EXPECT_EQ(registry.create(variable("w", {1}))->name, "w_1");
  EXPECT_EQ(registry.create(variable("w", {1}))->name, "w_2");
}

TEST(Registry, EveryChangeIsANewVersionAndOldOnesStay) {
  VariableRegistry registry({}, shards(1));
  auto before = registry.layout();
  registry.create(variable("w", {1}));
  EXPECT_GT(registry.version(), before->version);
  EXPECT_TRUE(before->variables.empty());
}

TEST(Registry, AVariableHasOneRuleWithSlots) {
  VariableRegistry registry({}, shards(1));
  registry.create(variable("w", {1}));
  UpdateRule adagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}};
  registry.add_slots("w", adagrad);
  registry.add_slots("w", adagrad);
  UpdateRule adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
  EXPECT_THROW(registry.add_slots("w", adam), FailedPreconditionError);
}

TEST(Registry, AnUnknownShapeIsRefused) {
  VariableRegistry registry({}, shards(1));
  EXPECT_THROW(registry.create(variable("w", {Shape::kUnknown, 2})), InvalidArgumentError);
}

TEST(Registry, RoundRobinGoesFromPsToPsAndThroughTheShardsOfEach) {
  std::vector<ShardLayout> two_each = shards_of({0, "", 1, 1}, 2);
  for (ShardLayout& shard : shards_of({1, "", 1, 1}, 2)) two_each.push_back(std::move(shard));
  VariableRegistry registry({.placement = Placement::kRoundRobin}, two_each);
  for (const char* name : {"a", "b", "c", "d", "e"}) registry.create(variable(name, {1}));
  std::vector<ShardId> shards;
  for (const auto& made : registry.layout()->variables) shards.push_back(made.parts[0].shard);
  EXPECT_THAT(shards, ::testing::ElementsAre(0, 2, 1, 3, 0));
}

TEST(Registry, AnotherProcessAnswersForAShardInItsNextEpoch) {
  VariableRegistry registry({}, shards_of({0, "", 1, 1}, 2));
  const auto before = registry.layout();
  registry.set_primary(1, {0, "", 2, 1});  // the same
  EXPECT_EQ(registry.version(), before->version);
  registry.set_primary(1, {0, "", 2, 9});
  std::vector<std::uint64_t> epochs, processes;
  for (const ShardLayout& shard : registry.layout()->shards) {
    epochs.push_back(shard.epoch.number);
    processes.push_back(shard.primary.process.number);
  }
  EXPECT_THAT(epochs, ::testing::ElementsAre(1, 2));
  EXPECT_THAT(processes, ::testing::ElementsAre(1, 9));
  EXPECT_GT(registry.version(), before->version);
}

TEST(Registry, AShardThatAnotherPlaceAnswersForHasNoBackupsYet) {
  VariableRegistry registry({}, shards_of({0, "", 1, 1}, 2));
  const std::uint64_t before = registry.version();
  const ShardReplica backup{1, "", 2, 7};
  registry.set_backups(0, {backup});
  registry.set_backups(0, {backup});
  EXPECT_EQ(registry.version(), before + 1);
  EXPECT_THAT(registry.layout()->shards[0].backups, ::testing::ElementsAre(backup));
  EXPECT_EQ(registry.layout()->shards[0].epoch, 1u);
  registry.set_primary(0, backup);
  EXPECT_EQ(registry.layout()->shards[0].primary, backup);
  EXPECT_THAT(registry.layout()->shards[0].backups, ::testing::IsEmpty());
  EXPECT_EQ(registry.layout()->shards[0].home, 0u);
}

TEST(Registry, AVariableBesideAnotherLiesOnItsShardInOnePartAndTakesNoTurn) {
  VariableRegistry registry(
      {.partitioner = FixedShardsPartitioner(2), .placement = Placement::kRoundRobin}, shards(3));
  registry.create(variable("scalar", {}));
  registry.create(variable("b", {}));
  registry.create(variable("beside", {4, 1}), "b");
  EXPECT_THAT(registry.layout()->find("beside")->parts, ::testing::ElementsAre(Part{1, {0, 4}}));
  EXPECT_EQ(registry.placed(), 2u);
}

TEST(Registry, NothingLiesBesideWhatIsInPartsOrUnknown) {
  VariableRegistry registry({.partitioner = FixedShardsPartitioner(2)}, shards(2));
  registry.create(variable("table", {4, 1}));
  EXPECT_THROW(registry.create(variable("v", {}), "table"), InvalidArgumentError);
  EXPECT_THROW(registry.create(variable("v", {}), "tabel"), NotFoundError);
  EXPECT_EQ(registry.create(variable("v", {}))->name, "v");  // refused ones used up no name
}

}  // namespace
}  // namespace cairn
