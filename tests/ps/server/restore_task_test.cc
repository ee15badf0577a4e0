// Restoring as a shard's service does it: read by one thread, placed by another.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/disk/memory_disk.h"
#include "tests/ps/server/saved_shards.h"
#include "tests/storage/damage.h"
#include "tests/storage/fixture.h"

namespace cairn::ps {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(RestoreShard, BringsRowsAndSlotsOfThreeShardsOntoAnyNumberBitForBit) {
  const storage::TempFolder folder;
  const auto store = storage::make_rocks_row_store();
  const auto offload = make_thread_offload(1);
  const SavedByThree saved(*store, *offload, folder.path());
  EXPECT_GT(saved.rows.size(), static_cast<std::size_t>(kDenseRows) + 30'000);
  for (const std::int64_t parts : {1, 2, 5, 8}) {
    LoneShard::Held restored;
    std::uint64_t rows = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      LoneShard shard(*store, *offload, parts, part);
      rows += shard.restore(saved.folder, saved.databases).report.rows;
      shard.add_held(restored);
    }
    EXPECT_TRUE(restored == saved.rows) << parts << " shards";
    EXPECT_EQ(rows, saved.rows.size()) << parts << " shards";
  }
}

// Rows that the checkpoint does not hold are at their initial values again.
TEST(RestoreShard, OverOtherRowsLeavesNoneOfThem) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto offload = make_inline_offload();
  const SavedByThree saved(*store, *offload, "c");
  LoneShard shard(*store, *offload);
  shard.host->shard.open();
  for (std::uint64_t closure = 100; closure < 103; ++closure) shard.train(closure);
  shard.restore(saved.folder, saved.databases);
  LoneShard::Held held;
  shard.add_held(held);
  EXPECT_TRUE(held == saved.rows);
}

TEST(RestoreShard, ABlockDamagedInTheMiddleIsNamedAndLeavesTheShardClosed) {
  const storage::TempFolder folder;
  const auto store = storage::make_rocks_row_store();
  const auto offload = make_thread_offload(1);
  const SavedByThree saved(*store, *offload, folder.path());
  const std::string rotten = storage::damage_in_the_middle(folder.path() + "/ps-1-shard-0");

  LoneShard shard(*store, *offload);
  EXPECT_THAT([&] { shard.restore(saved.folder, saved.databases); },
              ThrowsMessage<DataLossError>(HasSubstr(rotten)));
  EXPECT_THROW(shard.host->shard.open(), FailedPreconditionError);
}

TEST(RestoreShard, ReadsTheNextBatchWhileItPlacesOneAndNoFurther) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto inline_offload = make_inline_offload();
  const SavedByThree saved(*store, *inline_offload, "c");

  HeldOffload offload;
  LoneShard shard(*store, offload);
  std::vector<std::uint64_t> placed_at_submit;
  offload.on_submit = [&] {
    EXPECT_TRUE(offload.held.empty()) << "two batches are being read";
    placed_at_submit.push_back(shard.host->shard.counters().restore.rows);
  };
  kj::Promise<RestoredRows> restoring =
      restore_shard(shard.host, saved.folder, saved.databases, {}).start();
  while (!restoring.poll(shard.reactor->scope())) offload.run_one();
  EXPECT_EQ(shard.reactor->wait(kj::mv(restoring)).report.rows, saved.rows.size());
  // Reading the second batch was asked for before a row of the first one was placed.
  ASSERT_GE(placed_at_submit.size(), 4u);
  EXPECT_EQ(placed_at_submit[1], 0u);
  EXPECT_GT(placed_at_submit[2], 0u);
}

TEST(RestoreShard, IsGivenUpWhenANewerOneBegins) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto inline_offload = make_inline_offload();
  const SavedByThree saved(*store, *inline_offload, "c");

  HeldOffload offload;
  LoneShard shard(*store, offload);
  kj::Promise<RestoredRows> first =
      restore_shard(shard.host, saved.folder, saved.databases, {}).start();
  for (int batch = 0; batch < 2; ++batch) {
    offload.run_one();
    EXPECT_FALSE(first.poll(shard.reactor->scope()));
  }
  EXPECT_GT(shard.host->shard.counters().restore.rows, 0u);
  kj::Promise<RestoredRows> second =
      restore_shard(shard.host, saved.folder, saved.databases, {}).start();
  while (!second.poll(shard.reactor->scope())) offload.run_one();
  EXPECT_THROW(shard.reactor->wait(kj::mv(first)), CancelledError);
  EXPECT_EQ(shard.reactor->wait(kj::mv(second)).report.rows, saved.rows.size());
  LoneShard::Held held;
  shard.add_held(held);
  EXPECT_TRUE(held == saved.rows);
}

}  // namespace
}  // namespace cairn::ps
