#include "rpc/wire/layout_wire.h"

#include <capnp/message.h>
#include <gmock/gmock.h>

#include "core/graph/wire/wire.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

struct Placed {
  std::uint32_t shard;
  std::int64_t begin, end;
};

// The layout of a variable "w" of 8 rows in these parts, over a wire.
std::shared_ptr<const Layout> layout_of_parts(const std::vector<Placed>& parts,
                                              std::uint32_t backups = 0) {
  capnp::MallocMessageBuilder message;
  auto layout = message.initRoot<wire::Layout>();
  for (auto shard : layout.initShards(2)) {
    shard.initPrimary().setAddress("sim://ps0");
    shard.initBackups(backups);
    shard.setEpoch(3);
  }
  auto variable = layout.initVariables(1)[0];
  wire::write(variable.initSpec(), VariableSpec{.name = "w", .shape = {8, 2}});
  wire::write(variable.initRule(), UpdateRule{});
  auto list = variable.initParts(static_cast<unsigned>(parts.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setShard(parts[i].shard);
    list[i].setBegin(parts[i].begin);
    list[i].setEnd(parts[i].end);
  }
  return wire::read(layout.asReader());
}

TEST(LayoutWire, PartsThatCoverTheRowsAreTaken) {
  EXPECT_EQ(layout_of_parts({{0, 0, 3}, {1, 3, 8}})->variables.at(0).parts.size(), 2u);
}

TEST(LayoutWire, PartsWithGapsOverlapsOrNoEndAreRefusedByName) {
  const std::vector<std::vector<Placed>> wrong = {{},
                                                  {{0, 0, 7}},
                                                  {{0, 0, 9}},
                                                  {{0, 0, 3}, {1, 4, 8}},
                                                  {{0, 0, 5}, {1, 3, 8}},
                                                  {{0, 0, 8}, {1, 8, 2}},
                                                  {{0, -1, 8}}};
  for (const auto& parts : wrong) {
    try {
      layout_of_parts(parts);
      ADD_FAILURE() << parts.size() << " parts were taken";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"w\""));
    }
  }
}

TEST(LayoutWire, AShardSaysWhoAnswersSinceWhichEpochAndWhoFollows) {
  const auto layout = layout_of_parts({{0, 0, 8}}, 1);
  ASSERT_EQ(layout->shard_count(), 2u);
  EXPECT_EQ(layout->shards[1].primary.address, "sim://ps0");
  EXPECT_EQ(layout->shards[1].epoch, 3u);
  EXPECT_EQ(layout->shards[1].backups.size(), 1u);
}

TEST(LayoutWire, GivenInitialValuesTravelWithAVariableAloneAndNotWithTheLayoutOfALane) {
  Layout layout;
  VariableLayout variable;
  variable.spec = std::make_shared<const VariableSpec>(VariableSpec{
      .name = "w",
      .shape = {2},
      .initializer = Initializer::from(Tensor::of<float>({2}, std::vector<float>{3, 4}))});
  variable.rule.kind = RuleKind::kAdagrad;
  variable.parts = {{0, {0, 1}}, {1, {1, 2}}};
  layout.variables.push_back(variable);
  capnp::MallocMessageBuilder alone, all;
  wire::write(alone.initRoot<wire::VariableLayout>(), variable);
  wire::write(all.initRoot<wire::Layout>(), layout);
  const VariableLayout same = wire::read(alone.getRoot<wire::VariableLayout>().asReader(), 7);
  const auto sent = wire::read(all.getRoot<wire::Layout>().asReader());
  EXPECT_EQ(same.id, 7u);
  EXPECT_EQ(same.parts, variable.parts);
  EXPECT_TRUE(same.rule == variable.rule);
  EXPECT_EQ(same.spec->initializer.value.values<float>()[1], 4.f);
  EXPECT_EQ(sent->variables.at(0).spec->initializer.kind, Initializer::Kind::kZeros);
  EXPECT_EQ(sent->variables.at(0).parts, variable.parts);
}

TEST(LayoutWire, ShardsAndBackupsThatNoClusterHasAreRefused) {  // a lane keeps a place for each
  EXPECT_THROW(layout_of_parts({{0xffffffff, 0, 8}}), InvalidArgumentError);
  EXPECT_THROW(layout_of_parts({{0, 0, 8}}, kBackupsMax + 1), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
