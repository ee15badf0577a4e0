// Restoring as a shard's service does it: read by one thread, placed by another.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/base/random.h"
#include "core/disk/memory_disk.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "tests/ps/shard/shard_fixture.h"
#include "tests/storage/fixture.h"

namespace cairn::ps {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kRun = 7;
constexpr std::int64_t kDenseRows = 6000, kWidth = 16, kManyRows = std::int64_t{1} << 42;

// A dense variable under Adam and a hashed one under lazy Adam: part `part` of `parts` of each.
std::vector<TableConfig> two_tables(std::int64_t parts, std::int64_t part) {
  VariableSpec dense{
      .name = "dense", .shape = {kDenseRows, kWidth}, .initializer = Initializer::uniform(-1, 1)};
  VariableSpec hashed{
      .name = "hashed", .shape = {kManyRows, kWidth}, .initializer = Initializer::uniform(-1, 1)};
  hashed.hashed = true;
  const auto cut = [&](std::int64_t rows) {
    return PartConfig{static_cast<std::uint32_t>(part),
                      split_rows(rows, parts)[static_cast<std::size_t>(part)]};
  };
  const UpdateRule lazy{RuleKind::kLazyAdam, adam().constants};
  return {{0, std::make_shared<const VariableSpec>(dense), adam(), {cut(kDenseRows)}},
          {1, std::make_shared<const VariableSpec>(hashed), lazy, {cut(kManyRows)}}};
}

// A shard of a ps, without the ps.
struct LoneShard {
  LoneShard(storage::RowStore& store, Offload& offload, std::int64_t parts = 1,
            std::int64_t part = 0)
      : reactor(rpc::make_reactor()),
        host(std::make_shared<ShardHost>(*reactor, ShardOptions{.incarnation = 100}, offload, 0, 1,
                                         store, str("ps-", part, "-shard-0"))),
        tables(two_tables(parts, part)) {
    host->shard.configure({kRun, 1, 42, tables});
    host->shard.announce(kRun, std::uint64_t{1} << 32, 0);
  }

  void train(std::uint64_t closure) {
    for (const TableConfig& table : tables) {
      const PartConfig part = table.parts[0];
      Random random(closure + static_cast<std::uint64_t>(part.rows.begin));
      Ids ids(3000);
      for (std::int64_t& id : ids)
        id = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(part.rows.size())));
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      Floats values(ids.size() * kWidth);
      for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
      StepContext step;
      step.sent_layout = 1;
      step.session = kRun;
      step.closure = closure;
      step.incarnation = 1;
      step.push_number = table.variable;
      const UpdateHeader header{table.variable, part.index, static_cast<std::uint32_t>(ids.size()),
                                false,          table.rule, 0.1f};
      host->shard.push({step, {}, {&header, 1}, ids, std::as_bytes(std::span(values))});
    }
  }

  void save(const std::string& folder) {
    host->shard.mark(1);
    reactor->wait(save_shard(host, 1, folder));
  }
  RestoredRows restore(const std::string& folder, const std::vector<std::string>& databases) {
    return reactor->wait(restore_shard(host, folder, databases, {}));
  }

  // Every row that a checkpoint of this shard would hold, with its slots, by variable and number.
  using Held = std::map<std::pair<std::string, std::int64_t>, std::vector<std::byte>>;
  void add_held(Held& held) {
    host->shard.mark(2);
    host->shard.begin_save(2);
    while (const auto record = host->shard.next_frozen(2)) {
      const auto* rows = std::get_if<storage::StoredRows>(&record->second);
      for (std::size_t i = 0; rows != nullptr && i < rows->offsets.size(); ++i) {
        const auto* at = rows->data.data() + i * rows->row_bytes();
        held[{record->first.variable,
              rows->first_row + static_cast<std::int64_t>(rows->offsets[i])}] = {
            at, at + rows->row_bytes()};
      }
    }
    host->shard.drop_mark(2);
  }

  std::unique_ptr<rpc::Reactor> reactor;
  std::shared_ptr<ShardHost> host;
  std::vector<TableConfig> tables;
};

struct SavedByThree {
  SavedByThree(storage::RowStore& store, Offload& offload, std::string where)
      : folder(std::move(where)) {
    for (std::int64_t part = 0; part < 3; ++part) {
      LoneShard shard(store, offload, 3, part);
      shard.host->shard.open();
      for (std::uint64_t closure = 1; closure < 5; ++closure) shard.train(closure);
      shard.save(folder);
      shard.add_held(rows);
      databases.push_back(shard.host->database);
    }
  }
  std::string folder;
  std::vector<std::string> databases;
  LoneShard::Held rows;
};

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
  std::string rotten;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/ps-1-shard-0"))
    if (entry.path().extension() == ".sst") rotten = entry.path();
  std::fstream file(rotten, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(rotten) / 2));
  file.write("\x5a\xa5", 2);
  file.close();

  LoneShard shard(*store, *offload);
  EXPECT_THAT([&] { shard.restore(saved.folder, saved.databases); },
              ThrowsMessage<DataLossError>(HasSubstr(rotten)));
  EXPECT_THROW(shard.host->shard.open(), FailedPreconditionError);
}

// Work that was submitted waits until the test runs it.
class HeldOffload final : public Offload {
 public:
  void submit(std::size_t, std::function<void()> work) override {
    if (on_submit) on_submit();
    held.push_back(std::move(work));
  }
  bool run_one() {
    if (held.empty()) return false;
    const auto work = std::move(held.front());
    held.pop_front();
    work();
    return true;
  }
  std::deque<std::function<void()>> held;
  std::function<void()> on_submit;
};

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
    placed_at_submit.push_back(shard.host->shard.counters().restored_rows);
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
  EXPECT_GT(shard.host->shard.counters().restored_rows, 0u);
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
