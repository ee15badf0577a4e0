// Real processes whose table is some times as large as the memory that its ps may take: rows come
// and go, are saved, restored with and without a limit, and come back when the ps is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/graph/ops.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/local_cluster.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kRows = 300'000, kDim = 16, kRowsAStep = 5'000;
constexpr const char* kLimit = "120 MB";  // of which rows have some 10 MB, and would take 40

// A program, and the servers that it starts.
class Counting {
 public:
  Counting(const std::string& dir, const std::string& memory_limit)
      : servers_({.ps = 1,
                  .workers = 1,
                  .shards = 1,
                  .lanes = 1,
                  .memory_limit = memory_limit,
                  .dir = dir,
                  .programs = CAIRN_PROGRAMS}),
        strategy_(TFConfigClusterResolver(started(servers_).tf_config("chief", 0)),
                  options(servers_)),
        coordinator_(strategy_) {
    table_ = strategy_.create_variable({.name = "table",
                                        .shape = {std::int64_t{1} << 40, kDim},
                                        .initializer = Initializer::zeros(),
                                        .hashed = true});
    step_ = strategy_.function(
        [this](const Array& ids) {
          const Array one = table_.gather(ids) * 0.0f + 1.0f;
          table_.update({.kind = RuleKind::kSgd}, IndexedSlices{ids, neg(one), table_.shape()},
                        Array(1.0f));
        },
        "count");
  }
  ~Counting() { servers_.stop(); }

  // Adds one to each row.
  void count() {
    for (std::int64_t first = 0; first < kRows; first += kRowsAStep)
      coordinator_.schedule(step_, {ids(first)});
    coordinator_.join();
  }
  // The least and the greatest number of all rows.
  std::pair<float, float> counts() {
    std::pair<float, float> most{1e9f, -1e9f};
    for (std::int64_t first = 0; first < kRows; first += kRowsAStep) {
      const Tensor rows = table_.gather(Array(ids(first))).eval();
      const auto [least, greatest] = std::ranges::minmax(rows.values<float>());
      most = {std::min(most.first, least), std::max(most.second, greatest)};
    }
    return most;
  }
  std::string save(const std::string& folder) { return coordinator_.save({.folder = folder}); }
  void restore(const std::string& checkpoint) { coordinator_.restore(checkpoint); }
  void kill_ps() {
    for (const RoleState& role : servers_.supervisor().roles())
      if (role.role == "ps") ASSERT_EQ(::kill(role.pid, SIGKILL), 0);
  }

 private:
  static LocalCluster& started(LocalCluster& servers) {
    servers.start();
    return servers;
  }
  static ParameterServerOptions options(const LocalCluster& servers) {
    ParameterServerOptions options;
    options.engine.cluster_id = servers.cluster_id();
    options.engine.token = servers.token();
    return options;
  }
  static Tensor ids(std::int64_t first) {
    std::vector<std::int64_t> ids(kRowsAStep);
    std::iota(ids.begin(), ids.end(), first);
    return Tensor::of<std::int64_t>({kRowsAStep}, ids);
  }

  LocalCluster servers_;
  ParameterServerStrategy strategy_;
  ClusterCoordinator coordinator_;
  Variable table_;
  Function step_;
};

using Counts = std::pair<float, float>;

TEST(LargerThanMemory, CountsAreRightSavedAndRestoredAndOutliveTheirPs) {
  const TempFolder folder;
  std::string checkpoint;
  {
    Counting limited(folder.path() + "/limited", kLimit);
    limited.count();
    limited.count();
    EXPECT_EQ(limited.counts(), Counts(2, 2));
    std::uint64_t on_disk = 0;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(folder.path() + "/limited/row-log"))
      on_disk += file.is_regular_file() ? file.file_size() : 0;
    EXPECT_GE(on_disk, std::uint64_t{16} << 20);  // most of 19 MB
    checkpoint = limited.save(folder.path() + "/checkpoints");
    limited.count();
    EXPECT_EQ(limited.counts(), Counts(3, 3));
    limited.kill_ps();
    limited.count();
    EXPECT_EQ(limited.counts(), Counts(3, 3));  // it went back to the checkpoint
    limited.restore(checkpoint);
    EXPECT_EQ(limited.counts(), Counts(2, 2));
  }
  Counting other(folder.path() + "/other", "none");
  other.restore(checkpoint);
  EXPECT_EQ(other.counts(), Counts(2, 2));
}

}  // namespace
}  // namespace cairn::tools
