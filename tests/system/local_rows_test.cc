// Real processes without a shared file system: each ps has its rows of checkpoints in a folder of
// its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/checkpoint/local_rows.h"
#include "core/disk/disk.h"
#include "core/graph/ops.h"
#include "storage/database_place.h"
#include "storage/manifest.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/local_cluster.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

constexpr std::int64_t kOwnRows = 1000, kOwnDim = 4, kIdsAtOnce = 50;
constexpr std::int64_t kAllIds = std::int64_t{1} << 40;
const UpdateRule kAdagradOfOwnRows{RuleKind::kAdagrad, {0.1f, 1e-7f}};

// Servers, and a program of one worker with a dense and a hashed table on them.
class Training {
 public:
  Training(const std::string& dir, int ps)
      : servers_({.ps = ps,
                  .workers = 1,
                  .shards = 1,
                  .lanes = 1,
                  .dir = dir,
                  .programs = CAIRN_PROGRAMS}),
        strategy_(TFConfigClusterResolver(started(servers_).tf_config("chief", 0)),
                  options(servers_, ps)),
        coordinator_(strategy_) {
    for (const bool hashed : {false, true})
      tables_.push_back(strategy_.create_variable({.name = hashed ? "hashed" : "dense",
                                                   .shape = {hashed ? kAllIds : kOwnRows, kOwnDim},
                                                   .initializer = Initializer::uniform(-1, 1),
                                                   .hashed = hashed}));
    {
      const Scope scope = strategy_.scope();
      for (const Variable& table : tables_)
        current_variable_creator().add_slots(table, kAdagradOfOwnRows);
    }
    step_ = strategy_.function(
        [this](const Array& ids) {
          for (const Variable& table : tables_)
            table.update(kAdagradOfOwnRows,
                         IndexedSlices{ids, table.gather(ids) * 0.5f + 0.25f, table.shape()},
                         Array(0.1f));
        },
        "step");
  }
  ~Training() { servers_.stop(); }

  // Each step takes the next rows.
  void train(std::int64_t steps) {
    for (; steps > 0; --steps) coordinator_.schedule(step_, {ids(next_++)});
    coordinator_.join();
  }
  std::string save(const CheckpointPolicy& policy) { return coordinator_.save(policy); }
  void restore(const std::string& checkpoint) { coordinator_.restore(checkpoint); }
  std::vector<float> rows() {
    std::vector<float> all;
    for (const Variable& table : tables_)
      for (std::int64_t step = 0; step < kOwnRows / kIdsAtOnce; ++step) {
        const Tensor rows = table.gather(Array(ids(step))).eval();
        const auto values = rows.values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  }
  void kill_ps(int index) {
    for (const RoleState& role : servers_.supervisor().roles()) {
      if (role.role != "ps" || static_cast<int>(role.index) != index) continue;
      ASSERT_EQ(::kill(role.pid, SIGKILL), 0);
    }
  }

 private:
  static LocalCluster& started(LocalCluster& servers) {
    servers.start();
    return servers;
  }
  static ParameterServerOptions options(const LocalCluster& servers, int ps) {
    ParameterServerOptions options;
    options.engine.cluster_id = servers.cluster_id();
    options.engine.token = servers.token();
    options.engine.pipeline_depth = 1;
    options.partitioner = FixedShardsPartitioner(ps);
    return options;
  }
  static Tensor ids(std::int64_t step) {
    std::vector<std::int64_t> ids(kIdsAtOnce);
    for (std::int64_t i = 0; i < kIdsAtOnce; ++i)
      ids[static_cast<std::size_t>(i)] = (step * kIdsAtOnce + i) % kOwnRows;
    return Tensor::of<std::int64_t>({kIdsAtOnce}, ids);
  }

  LocalCluster servers_;
  ParameterServerStrategy strategy_;
  ClusterCoordinator coordinator_;
  std::vector<Variable> tables_;
  Function step_;
  std::int64_t next_ = 0;
};

struct LocalRowsOfPs : ::testing::Test {
  std::string path(const std::string& name) const { return folder.path() + "/" + name; }
  CheckpointPolicy policy(std::size_t keep_last = 5, std::size_t full_every = 1) const {
    return {.folder = path("c"),
            .keep_last = keep_last,
            .full_every = full_every,
            .local_folder = path("own")};
  }
  std::vector<std::string> rows_of(int ps) const {
    return system_disk().list(path(str("own/ps-", ps)));
  }
  const TempFolder folder;
};

TEST_F(LocalRowsOfPs, AreRestoredOntoTheSameAndOntoAnotherNumberOfPs) {
  std::string checkpoint;
  std::vector<float> expected;
  {
    Training first(path("first"), 2);
    first.train(7);
    checkpoint = first.save(policy());
    EXPECT_THAT(system_disk().list(checkpoint), ElementsAre(storage::kManifestFile));
    EXPECT_THAT(rows_of(0), SizeIs(1));
    EXPECT_EQ(rows_of(0), rows_of(1));
    expected = first.rows();
    first.train(3);
    ASSERT_NE(first.rows(), expected);
    first.restore(checkpoint);
    EXPECT_EQ(first.rows(), expected);
    first.kill_ps(1);
    EXPECT_EQ(first.rows(), expected) << "it has come back with its own rows";
  }
  Training second(path("second"), 3);
  second.restore(checkpoint);
  EXPECT_EQ(second.rows(), expected);
}

TEST_F(LocalRowsOfPs, AFolderThatIsMissingIsAnErrorBeforeAnythingIsRestored) {
  std::string checkpoint;
  {
    Training first(path("first"), 2);
    first.train(7);
    checkpoint = first.save(policy());
  }
  std::filesystem::rename(path("own/ps-1"), path("gone"));
  {
    Training same(path("same"), 2);
    same.train(1);
    const std::vector<float> before = same.rows();
    EXPECT_THAT([&] { same.restore(checkpoint); },
                ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("/job:ps/task:1 wrote"),
                                                             HasSubstr(path("own/ps-1/rows-")),
                                                             HasSubstr("cairn ckpt copy"))));
    EXPECT_EQ(same.rows(), before);
  }
  Training fewer(path("fewer"), 1);
  EXPECT_THAT([&] { fewer.restore(checkpoint); },
              ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("/job:ps/task:0 needs"),
                                                           HasSubstr("/job:ps/task:1 wrote"),
                                                           HasSubstr("ps-1-shard-0"))));
}

TEST_F(LocalRowsOfPs, DeltasNameThoseOfTheirBasesAndWhatNoneNamesGoes) {
  std::vector<float> expected;
  std::string newest;
  {
    Training first(path("first"), 2);
    for (int save = 0; save < 4; ++save) {
      first.train(3);
      newest = first.save(policy(2, 3));
    }
    // The third is a delta of two before it, and the fourth a full one.
    EXPECT_THAT(rows_of(0), SizeIs(4));
    first.train(2);
    first.save(policy(2, 3));
    EXPECT_THAT(rows_of(1), SizeIs(2)) << "the fourth and its delta";
    EXPECT_EQ(rows_of(0), rows_of(1));
    first.train(1);
    newest = first.save(policy(1, 3));
    EXPECT_THAT(rows_of(1), SizeIs(3)) << "the newest goes back to two";
    expected = first.rows();
  }
  EXPECT_EQ(storage::read_manifest(system_disk(), newest).base, "ckpt-00000005");
  Training second(path("second"), 2);
  second.restore(newest);
  EXPECT_EQ(second.rows(), expected);
  // Another run goes on, and removes what it inherited; so it does of an attempt that was killed.
  const LocalRows killed = local_rows_of_ps(path("own"), 1, "/job:ps/task:1", 7, 1);
  note_local_rows(system_disk(), path("c"), {killed});
  system_disk().make_folder(killed.path);
  second.save(policy(1));
  EXPECT_THAT(rows_of(0), SizeIs(1));
  EXPECT_EQ(rows_of(0), rows_of(1));
  EXPECT_THAT(unnamed_local_rows(system_disk(), path("c")), IsEmpty());
}

}  // namespace
}  // namespace cairn::tools
