#include "core/rows/layout.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Partitioners, RefuseOptionsBelowOneAndUnknownShapes) {
  EXPECT_THROW(MinSizePartitioner({.min_shard_bytes = -4}), InvalidArgumentError);
  EXPECT_THROW(MinSizePartitioner({.max_shards = 0}), InvalidArgumentError);
  EXPECT_THROW(MinSizePartitioner({.bytes_per_string = 0}), InvalidArgumentError);
  EXPECT_THROW(MaxSizePartitioner({.max_shard_bytes = 0}), InvalidArgumentError);
  EXPECT_THROW(MaxSizePartitioner({.max_shard_bytes = 8, .max_shards = -1}), InvalidArgumentError);
  EXPECT_THROW((*FixedShardsPartitioner(2))(Shape{Shape::kUnknown, 4}, DType::kFloat32),
               InvalidArgumentError);
}

TEST(Partitioners, OfAGreatestSizeTakeZeroShardsForNoBound) {
  const Shape shape{10, 1};
  EXPECT_EQ((*MaxSizePartitioner({.max_shard_bytes = 8, .max_shards = 0}))(shape, DType::kFloat32),
            (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ((*MaxSizePartitioner({.max_shard_bytes = 8, .max_shards = 2}))(shape, DType::kFloat32),
            (std::vector<std::int64_t>{2, 1}));
}

TEST(Partitioners, CutAlongTheAxisAsked) {
  const Shape shape{5, 8, 2};
  EXPECT_EQ((*FixedShardsPartitioner(3))(shape, DType::kFloat32, 1),
            (std::vector<std::int64_t>{1, 3, 1}));
  EXPECT_EQ((*MaxSizePartitioner({.max_shard_bytes = 40}))(shape, DType::kFloat32, 1),
            (std::vector<std::int64_t>{1, 8, 1}));
  EXPECT_THROW((*FixedShardsPartitioner(3))(shape, DType::kFloat32, 3), InvalidArgumentError);
}

TEST(AsRange, IsOfNumbersThatCountOneAfterTheOther) {
  const auto range = [](std::vector<std::int64_t> rows) { return as_range(rows); };
  EXPECT_EQ(range({}), std::nullopt);
  EXPECT_EQ(range({7}), (RowRange{7, 8}));
  EXPECT_EQ(range({3, 4, 5}), (RowRange{3, 6}));
  EXPECT_EQ(range({3, 5, 6}), std::nullopt);
  EXPECT_EQ(range({3, 5, 4, 6}), std::nullopt);
  EXPECT_EQ(range({3, 3, 5}), std::nullopt);
}

TEST(SplitRows, TheFirstPartsHaveOneRowMore) {
  EXPECT_EQ(split_rows(7, 3), (std::vector<RowRange>{{0, 3}, {3, 5}, {5, 7}}));
  EXPECT_EQ(split_rows(2, 5), (std::vector<RowRange>{{0, 1}, {1, 2}}));
  EXPECT_EQ(split_rows(0, 2), (std::vector<RowRange>{{0, 0}}));
  EXPECT_THROW(split_rows(3, 0), InvalidArgumentError);
}

TEST(Layout, FindsVariablesByName) {
  auto spec = std::make_shared<VariableSpec>();
  spec->name = "w";
  Layout layout{.variables = {{.spec = spec}}};
  EXPECT_EQ(layout.find("w"), &layout.variables[0]);
  EXPECT_EQ(layout.find("v"), nullptr);
}

TEST(Layout, AShardOfAPsHasAnEndpointOfItsOwn) {
  const std::vector<ShardLayout> shards = shards_of({3, "sim://ps3", 1, 9}, 2);
  ASSERT_EQ(shards.size(), 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(shards[i].primary, (ShardReplica{3, "sim://ps3", 1 + i, 9}));
    EXPECT_EQ(shards[i].epoch, 1u);
  }
}

}  // namespace
}  // namespace cairn
