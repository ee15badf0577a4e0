// Chains of deltas that the coordinator makes full beside the training, and programs that go on
// from what it made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "strategy/servers/checkpoint.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const UpdateRule kChainedAdagrad{RuleKind::kAdagrad, {0.0f, 0.0f}};

struct ConsolidatedCheckpoint : ::testing::Test {
  ConsolidatedCheckpoint() { make(); }
  static SimulatedClusterOptions options() {
    SimulatedClusterOptions options{.ps = 2, .workers = 1};
    options.strategy.partitioner = FixedShardsPartitioner(2);
    return options;
  }
  void make() {
    table = cluster.strategy().create_variable(
        {.name = "table", .shape = {1 << 20, 2}, .hashed = true});
    cluster.strategy().add_slots(table, kChainedAdagrad);
  }
  Array ids() const {
    return Array(Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{saves, 700'000}));
  }
  // A step on a row of its own and on one that each save has, and a delta of it.
  std::string save(std::size_t after = 2, std::size_t keep_last = 9) {
    ++saves;
    Function step = cluster.strategy().function([this] {
      table.update(kChainedAdagrad,
                   IndexedSlices{ids(), table.gather(ids()) + Array(1.0f), table.shape()},
                   Array(0.1f));
    });
    cluster.strategy().run(step);
    return cluster.strategy().save(
        {.folder = "/c", .keep_last = keep_last, .full_every = 20, .consolidate_after = after});
  }
  storage::Manifest manifest(const std::string& path) {
    return storage::read_manifest(cluster.disk(), path);
  }
  std::vector<std::string> databases(const std::string& path) {
    std::vector<std::string> names;
    for (const auto& database : manifest(path).databases) names.push_back(database.name);
    return names;
  }
  std::vector<float> values() {
    std::vector<std::int64_t> all{700'000};
    for (std::int64_t id = 1; id <= saves; ++id) all.push_back(id);
    const auto count = static_cast<std::int64_t>(all.size());
    const Tensor rows = table.gather(Array(Tensor::of<std::int64_t>({count}, all))).eval();
    return {rows.values<float>().begin(), rows.values<float>().end()};
  }
  SimulatedCluster cluster{options()};
  Variable table;
  std::int64_t saves = 0;
};

TEST_F(ConsolidatedCheckpoint, IsFullOnceTheChainIsAsLongAsItMayBeAndTheNextDeltaGoesBackToIt) {
  save();
  EXPECT_THAT(databases(save()), Contains("ckpt-00000001.ps-0-shard-0"));
  const std::string third = save();
  cluster.run_for(std::chrono::seconds(1));
  EXPECT_THAT(databases(third), ElementsAre("full-0", "full-1"));
  EXPECT_EQ(manifest(third).base, "");
  EXPECT_THAT(cluster.disk().list("/c"),
              ElementsAre("ckpt-00000001", "ckpt-00000002", "ckpt-00000003"));
  const std::string fourth = save();
  EXPECT_THAT(databases(fourth), ElementsAre("ckpt-00000003.full-0", "ckpt-00000003.full-1",
                                             "ps-0-shard-0", "ps-1-shard-0"));
  EXPECT_THAT(databases(save()), Contains("ckpt-00000003.full-0"));
}

TEST_F(ConsolidatedCheckpoint, RestoresWhatTheRunHad) {
  std::string newest;
  for (int i = 0; i < 8; ++i) {
    newest = save(2, 1);  // what it is made of is removed meanwhile
    if (i % 2 == 0) cluster.run_for(std::chrono::seconds(1));
  }
  const std::vector<float> before = values();
  cluster.run_for(std::chrono::seconds(1));
  const auto store = storage::make_memory_row_store(cluster.disk());
  EXPECT_THAT(storage::verify(cluster.disk(), *store, newest).problems, IsEmpty());
  cluster.kill_chief();
  cluster.start_chief();
  RestoreStatus back = Checkpoint(cluster.strategy()).restore(newest);
  make();
  back.assert_consumed();
  EXPECT_EQ(values(), before);
}

TEST_F(ConsolidatedCheckpoint, RebuildsAPsThatIsLost) {
  for (int i = 0; i < 3; ++i) save();
  cluster.run_for(std::chrono::seconds(1));
  const std::vector<float> before = values();
  cluster.kill_ps(1);
  cluster.start_ps(1);
  EXPECT_EQ(values(), before);
}

TEST_F(ConsolidatedCheckpoint, ThatIsDamagedMakesTheNextOneFull) {
  for (int i = 0; i < 2; ++i) save();
  cluster.disk().flip_bit("/c/ckpt-00000002/ckpt-00000001.ps-0-shard-0/rows", 100);
  save();  // its links are copies here, and as damaged
  cluster.run_for(std::chrono::seconds(1));
  const std::string next = save();
  EXPECT_EQ(manifest(next).base, "");
  const auto store = storage::make_memory_row_store(cluster.disk());
  EXPECT_THAT(storage::verify(cluster.disk(), *store, next).problems, IsEmpty());
}

TEST_F(ConsolidatedCheckpoint, IsRefusedWhereItMeansNothing) {
  const auto refused = [&](const CheckpointPolicy& policy) -> std::string {
    try {
      cluster.strategy().save(policy);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused({.folder = "/c", .full_every = 3, .consolidate_after = 3}),
              HasSubstr("raise full_every"));
  EXPECT_THAT(refused({.folder = "/c",
                       .full_every = 9,
                       .consolidate_after = 3,
                       .encoding = {.rows = storage::RowForm::kInt8}}),
              HasSubstr("int8"));
  cluster.disk().set_links(false);
  EXPECT_THAT(refused({.folder = "/c", .full_every = 9, .consolidate_after = 3}),
              HasSubstr("bucket"));
}

}  // namespace
}  // namespace cairn
