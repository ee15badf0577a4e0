// Restoring on demand: the shard is open, and its rows come from the disk by and by.
#include "ps/server/on_demand_restore.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/disk/memory_disk.h"
#include "tests/ps/server/saved_shards.h"
#include "tests/storage/damage.h"
#include "tests/storage/fixture.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

RestoredRows begin(LoneShard& shard, const std::string& folder,
                   const std::vector<std::string>& databases, RowMoves moves = {}) {
  auto restored = shard.reactor->wait(
      restore_on_demand(shard.host, folder, databases, {}, {}, std::move(moves)));
  shard.host->shard.open();
  return restored;
}

void end(LoneShard& shard) { shard.reactor->wait(await_restore(shard.host)); }

TEST(OnDemandRestore, BringsRowsAndSlotsOfThreeShardsOntoAnyNumberBitForBit) {
  const storage::TempFolder folder;
  const auto store = storage::make_rocks_row_store();
  const auto offload = make_thread_offload(2);
  const SavedByThree saved(*store, *offload, folder.path());
  for (const std::int64_t parts : {1, 2, 5}) {
    LoneShard::Held restored;
    for (std::int64_t part = 0; part < parts; ++part) {
      LoneShard shard(*store, *offload, parts, part);
      EXPECT_TRUE(begin(shard, saved.folder, saved.databases).later);
      end(shard);
      shard.add_held(restored);
    }
    EXPECT_TRUE(restored == saved.rows) << parts << " shards";
  }
}

// Whatever the order in which rows are read, and steps come between: they end in the same bits as
// after a restore of everything. What two restores share are the steps, which come in one order.
TEST(OnDemandRestore, StepsTakenMeanwhileEndInTheSameBits) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto inline_offload = make_inline_offload();
  const SavedByThree saved(*store, *inline_offload, "c");
  LoneShard::Held expected;
  {
    LoneShard whole(*store, *inline_offload);
    whole.restore(saved.folder, saved.databases);
    whole.host->shard.open();
    for (std::uint64_t closure = 100; closure < 106; ++closure) whole.train(closure);
    whole.add_held(expected);
  }

  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    HeldOffload offload;
    LoneShard shard(*store, offload);
    shard.host->restore_batch_bytes = std::size_t{1} << (8 + 4 * seed);
    auto& scope = shard.reactor->scope();
    kj::Promise<RestoredRows> restoring =
        restore_on_demand(shard.host, saved.folder, saved.databases, {}).start();
    while (!restoring.poll(scope)) offload.run_one();
    shard.host->shard.open();
    std::uint64_t closure = 100;
    kj::Promise<void> all_here = await_restore(shard.host).start();
    kj::Promise<void> never = kj::NEVER_DONE;
    while (closure < 106 || !all_here.poll(scope) ||
           shard.host->shard.counters().kept.waiting > 0) {
      if (closure < 106 && random.below(4) == 0) shard.train(closure++);
      if (random.below(2) == 0 && offload.held.size() > 1)
        std::swap(offload.held.front(), offload.held.back());  // of different lanes
      offload.run_one();
      never.poll(scope);
    }
    LoneShard::Held held;
    shard.add_held(held);
    EXPECT_TRUE(held == expected) << "seed " << seed;
  }
}

// A full checkpoint and two deltas of it.
TEST(OnDemandRestore, OfAFullCheckpointAndItsDeltasTheNewestRowCounts) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto offload = make_inline_offload();
  std::vector<std::string> databases;
  LoneShard::Held expected;
  {
    LoneShard trained(*store, *offload);
    trained.host->shard.open();
    for (std::uint64_t save = 1; save < 4; ++save) {
      trained.train(save);
      trained.host->database = str("ps-0-shard-0-", save);
      trained.host->shard.mark(10 + save, {.base = save == 1 ? 0 : 9 + save, .track = true});
      trained.reactor->wait(save_shard(trained.host, 10 + save, "c"));
      databases.push_back(trained.host->database);
    }
    trained.add_held(expected);
  }

  LoneShard shard(*store, *offload);
  begin(shard, "c", databases);
  end(shard);
  LoneShard::Held held;
  shard.add_held(held);
  EXPECT_TRUE(held == expected);
}

TEST(OnDemandRestore, ABlockDamagedInTheMiddleIsNamedAndNoStateIsMarked) {
  const storage::TempFolder folder;
  const auto store = storage::make_rocks_row_store();
  const auto offload = make_thread_offload(2);
  const SavedByThree saved(*store, *offload, folder.path());
  const std::string rotten = storage::damage_in_the_middle(folder.path() + "/ps-1-shard-0");

  LoneShard shard(*store, *offload);
  EXPECT_TRUE(begin(shard, saved.folder, saved.databases).later);
  EXPECT_THAT([&] { end(shard); },
              ThrowsMessage<DataLossError>(
                  AllOf(HasSubstr(rotten), HasSubstr("no older checkpoint beside it is sound"))));
  EXPECT_THROW(shard.host->shard.mark(1), UnavailableError);
}

// The process of the shard goes while rows are read.
TEST(OnDemandRestore, EndsWithItsShard) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto inline_offload = make_inline_offload();
  const SavedByThree saved(*store, *inline_offload, "c");
  HeldOffload offload;
  {
    LoneShard shard(*store, offload);
    kj::Promise<RestoredRows> restoring =
        restore_on_demand(shard.host, saved.folder, saved.databases, {}).start();
    while (!restoring.poll(shard.reactor->scope())) offload.run_one();
    shard.host->shard.open();
    shard.train(100);
  }
  while (offload.run_one()) {
  }
}

TEST(OnDemandRestore, RowsThatCannotBeFoundOneByOneAllComeFirst) {
  MemoryDisk disk;
  const auto store = storage::make_memory_row_store(disk);
  const auto offload = make_inline_offload();
  const SavedByThree saved(*store, *offload, "c");
  {
    LoneShard limited(*store, *offload, 1, 0,
                      {.memory_bytes = std::size_t{1} << 30, .make_store = {}});
    EXPECT_FALSE(begin(limited, saved.folder, saved.databases).later);
    EXPECT_EQ(limited.host->shard.counters().restore.rows, saved.rows.size());
  }
  RowNumbers numbers(kDenseRows);
  for (std::int64_t row = 0; row < kDenseRows; ++row)
    numbers[static_cast<std::size_t>(row)] = kDenseRows - 1 - row;
  LoneShard renumbered(*store, *offload);
  const RowMove move{
      .from = "dense", .rows = kDenseRows, .numbers = std::make_shared<const RowNumbers>(numbers)};
  EXPECT_FALSE(begin(renumbered, saved.folder, saved.databases, {{"dense", move}}).later);
  EXPECT_EQ(renumbered.host->shard.counters().restore.rows, saved.rows.size());
}

}  // namespace
}  // namespace cairn::ps
