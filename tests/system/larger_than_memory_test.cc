// Real processes whose table is some times as large as the memory that its ps may take: rows come
// and go, are saved, restored with and without a limit, and come back when the ps is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/graph/ops.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/system/running_cluster.h"
#include "tests/tools/temp_folder.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kRows = 300'000, kDim = 16, kRowsAStep = 5'000;
constexpr const char* kLimit = "120 MB";  // of which rows have some 10 MB, and would take 40

// A program, and the servers that it starts.
class Counting {
 public:
  Counting(const std::string& dir, const std::string& memory_limit)
      : cluster_({.ps = 1,
                  .workers = 1,
                  .shards = 1,
                  .lanes = 1,
                  .memory_limit = memory_limit,
                  .dir = dir}) {
    table_ = cluster_.strategy().create_variable({.name = "table",
                                                  .shape = {std::int64_t{1} << 40, kDim},
                                                  .initializer = Initializer::zeros(),
                                                  .hashed = true,
                                                  .policy = {.evictable = true}});
    step_ = cluster_.strategy().function(
        [this](const Array& ids) {
          const Array one = table_.gather(ids) * 0.0f + 1.0f;
          table_.update({.kind = RuleKind::kSgd}, IndexedSlices{ids, neg(one), table_.shape()},
                        Array(1.0f));
        },
        "count");
  }

  // Adds one to each row, or to the first ones.
  void count(std::int64_t rows = kRows) {
    for (std::int64_t first = 0; first < rows; first += kRowsAStep)
      cluster_.coordinator().schedule(step_, {ids(first)});
    cluster_.coordinator().join();
  }
  // The last ones go for good.
  void evict_last(std::int64_t rows) {
    for (std::int64_t first = kRows - rows; first < kRows; first += kRowsAStep)
      table_.evict(ids(first));
  }
  // The least and the greatest number of rows.
  std::pair<float, float> counts(std::int64_t begin = 0, std::int64_t end = kRows) {
    std::pair<float, float> most{1e9f, -1e9f};
    for (std::int64_t first = begin; first < end; first += kRowsAStep) {
      const Tensor rows = table_.gather(Array(ids(first))).eval();
      const auto [least, greatest] = std::ranges::minmax(rows.values<float>());
      most = {std::min(most.first, least), std::max(most.second, greatest)};
    }
    return most;
  }
  std::string save(const std::string& folder) {
    return cluster_.coordinator().save({.folder = folder, .full_every = 10});
  }
  void restore(const std::string& checkpoint) { cluster_.coordinator().restore(checkpoint); }
  void kill_all_ps() { cluster_.kill_all_ps(); }

 private:
  static Tensor ids(std::int64_t first) {
    std::vector<std::int64_t> ids(kRowsAStep);
    std::iota(ids.begin(), ids.end(), first);
    return Tensor::of<std::int64_t>({kRowsAStep}, ids);
  }

  RunningCluster cluster_;
  Variable table_;
  Function step_;
};

using Counts = std::pair<float, float>;

std::uint64_t own_bytes(const std::string& checkpoint) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(checkpoint))
    if (file.is_regular_file() && file.hard_link_count() == 1) bytes += file.file_size();
  return bytes;
}

TEST(LargerThanMemory, ADeltaHasTheRowsThatChangedAndNoneThatWent) {
  const TempFolder folder;
  std::string delta;
  {
    Counting limited(folder.path() + "/limited", kLimit);
    limited.count();
    const std::uint64_t whole = own_bytes(limited.save(folder.path() + "/checkpoints"));
    limited.count(20'000);
    limited.evict_last(5'000);
    EXPECT_EQ(limited.counts(20'000, kRows - 5'000), Counts(1, 1));  // those in front have left
    delta = limited.save(folder.path() + "/checkpoints");
    EXPECT_LT(own_bytes(delta), whole / 5);
  }
  Counting other(folder.path() + "/other", "none");
  other.restore(delta);
  EXPECT_EQ(other.counts(0, 20'000), Counts(2, 2));
  EXPECT_EQ(other.counts(20'000, kRows - 5'000), Counts(1, 1));
  EXPECT_EQ(other.counts(kRows - 5'000), Counts(0, 0));
}

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
    limited.kill_all_ps();
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
