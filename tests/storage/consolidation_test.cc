#include "storage/consolidation.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/folder_lock.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

VariableInfo chained_variable() {
  return {.name = "v",
          .shape = Shape{1000, 4},
          .rule = {RuleKind::kAdagrad, {0.1f}},
          .slots = {"accumulator"},
          .parts = {{0, 500}, {500, 1000}}};
}

// Checkpoints of one run, of which each but the first is a delta to the one before it: number n
// wrote rows n, 2n, 3n, ..., each of whose elements is n.
struct Chain {
  Chain(Disk& files, std::shared_ptr<RowStore> databases, std::string where)
      : disk(files), store(std::move(databases)), folder(std::move(where)) {}

  std::string path(std::uint64_t id) const { return folder + "/" + CheckpointFolder::name(id); }

  void save(std::uint64_t id, Compression compression = Compression::kNone) {
    Manifest manifest{.checkpoint = id, .variables = {chained_variable()}};
    manifest.compression = compression;
    if (id > 1) link_base(id - 1, manifest);
    CheckpointWriter writer(*store, path(id), {"ps-0-shard-0"});
    writer.begin(chained_variable(), static_cast<std::int64_t>(id), {},
                 {.compression = compression});
    RowBatch batch;
    for (auto row = static_cast<std::int64_t>(id); row < 1000; row += static_cast<int>(id))
      batch.rows.push_back(row);
    const std::vector<float> values(batch.rows.size() * 8, static_cast<float>(id));
    batch.data.resize(values.size() * sizeof(float));
    std::memcpy(batch.data.data(), values.data(), batch.data.size());
    writer.add(batch);
    for (DatabaseInfo& made : writer.finish()) manifest.databases.push_back(std::move(made));
    commit(disk, path(id), manifest);
  }
  void link_base(std::uint64_t id, Manifest& manifest) {
    manifest.base = CheckpointFolder::name(id);
    for (DatabaseInfo database : read_manifest(disk, path(id)).databases) {
      const std::string from = database.name;
      if (from.find('.') == std::string::npos) database.name = manifest.base + "." + from;
      std::vector<std::string> files;
      for (FileInfo& file : database.files) {
        files.push_back(file.name.substr(file.name.find('/') + 1));
        file.name = database.name + "/" + files.back();
      }
      disk.link_files(path(id) + "/" + from, path(id + 1) + "/" + database.name, files);
      manifest.databases.push_back(database);
    }
  }
  std::vector<std::string> databases(std::uint64_t id) const {
    std::vector<std::string> names;
    for (const auto& database : read_manifest(disk, path(id)).databases)
      names.push_back(database.name);
    return names;
  }
  // Row by row, as text: what a restore of the checkpoint would find.
  std::string content(std::uint64_t id) const {
    std::vector<std::unique_ptr<DatabaseReader>> readers;
    std::vector<DatabaseReader*> borrowed;
    for (const std::string& name : databases(id))
      borrowed.push_back(readers.emplace_back(store->open(path(id) + "/" + name)).get());
    MergedRows rows(borrowed, chained_variable(), {0, 1000});
    std::string text = str("t ", rows.updates());
    for (RowBatch batch; rows.next(batch);)
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        float value;
        std::memcpy(&value, batch.data.data() + i * rows.form().bytes(), sizeof value);
        text += str(" ", batch.rows[i], ":", value);
      }
    return text;
  }
  void expect_sound(std::uint64_t id) const {
    EXPECT_THAT(verify(disk, *store, path(id)).problems, IsEmpty());
  }

  Disk& disk;
  std::shared_ptr<RowStore> store;
  std::string folder;
};

struct MemoryChain : Chain {
  MemoryDisk memory;
  MemoryChain() : Chain(memory, make_memory_row_store(memory), "c") {}
};

void write_all(Consolidation& work) {
  while (work.step()) {
  }
}

TEST(Consolidation, OfADeltaOnTheDiskHasItsRowsAndLeavesNothingBeside) {
  const TempFolder folder;
  Chain chain(system_disk(), make_rocks_row_store(), folder.path());
  for (std::uint64_t id = 1; id <= 3; ++id) chain.save(id, Compression::kZstd);
  const std::string before = chain.content(3);
  {
    Consolidation work(chain.disk, chain.store, chain.path(3));
    std::filesystem::remove_all(chain.path(1));  // as keep_last has it meanwhile
    write_all(work);
    ASSERT_TRUE(work.put_into(chain.path(3)).has_value());
  }
  EXPECT_THAT(chain.databases(3), ElementsAre("full-0", "full-1"));
  EXPECT_EQ(read_manifest(chain.disk, chain.path(3)).base, "");
  EXPECT_EQ(chain.content(3), before);
  chain.expect_sound(3);
  EXPECT_THAT(chain.disk.list(folder.path()), ElementsAre("ckpt-00000002", "ckpt-00000003"));
}

// Which is what happens where a save ends before the consolidation does.
TEST(Consolidation, IsPutIntoALaterDeltaThatGoesBackToIt) {
  MemoryChain chain;
  for (std::uint64_t id = 1; id <= 3; ++id) chain.save(id);
  Consolidation work(chain.disk, chain.store, chain.path(3));
  chain.save(4);
  chain.save(5);
  const std::string before = chain.content(5);
  write_all(work);
  const auto manifest = work.put_into(chain.path(5));
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->base, "ckpt-00000004");
  EXPECT_THAT(chain.databases(5), ElementsAre("ckpt-00000003.full-0", "ckpt-00000003.full-1",
                                              "ckpt-00000004.ps-0-shard-0", "ps-0-shard-0"));
  EXPECT_EQ(chain.content(5), before);
  chain.expect_sound(5);
  chain.save(6);  // goes on from there
  EXPECT_THAT(chain.databases(6).front(), "ckpt-00000003.full-0");
  chain.expect_sound(6);
}

TEST(Consolidation, IsNotPutIntoACheckpointOfAnotherChain) {
  MemoryChain chain, other;
  for (std::uint64_t id = 1; id <= 2; ++id) chain.save(id);
  Consolidation work(chain.disk, chain.store, chain.path(2));
  write_all(work);
  write_checkpoint(chain.disk, *chain.store, chain.path(3), 3);
  const Manifest before = read_manifest(chain.disk, chain.path(3));
  EXPECT_EQ(work.put_into(chain.path(3)), std::nullopt);
  EXPECT_EQ(read_manifest(chain.disk, chain.path(3)), before);
}

// The process is killed in each write that there is, the manifest's among them.
TEST(Consolidation, ThatIsKilledAnywhereLeavesTheChainAndNothingAfterTheNextStart) {
  std::size_t whole = 0;
  for (std::uint64_t write = 0; whole == 0; ++write) {
    MemoryChain chain;
    for (std::uint64_t id = 1; id <= 3; ++id) chain.save(id);
    const std::string before = chain.content(3);
    chain.memory.crash_at_write(write, 20);
    try {
      Consolidation work(chain.disk, chain.store, chain.path(3));
      write_all(work);
      whole += work.put_into(chain.path(3)).has_value() ? 1 : 0;
      chain.memory.crash_at_write(0);
      EXPECT_THROW(chain.memory.write_atomically("c/x", ""), UnavailableError);
    } catch (const UnavailableError&) {
      EXPECT_EQ(whole, 0u) << write;
    }
    chain.memory.recover();
    chain.memory.remove("c/x.0.tmp");
    EXPECT_FALSE(chain.memory.list("c/ckpt-00000003.consolidating").empty()) << write;
    EXPECT_EQ(chain.content(3), before) << write;
    chain.expect_sound(3);
    lock_folder(chain.disk, "c", system_clock(), Duration::zero());
    EXPECT_THAT(chain.memory.list("c"),
                ElementsAre("ckpt-00000001", "ckpt-00000002", "ckpt-00000003"))
        << write;
  }
}

TEST(Consolidation, OfADamagedChainFailsNamingTheFileAndChangesNothing) {
  MemoryChain chain;
  for (std::uint64_t id = 1; id <= 3; ++id) chain.save(id);
  chain.memory.flip_bit("c/ckpt-00000003/ckpt-00000001.ps-0-shard-0/rows", 2000);
  const Manifest before = read_manifest(chain.disk, chain.path(3));
  EXPECT_THAT(
      [&] {
        Consolidation work(chain.disk, chain.store, chain.path(3));
        write_all(work);
      },
      testing::ThrowsMessage<DataLossError>(HasSubstr("ckpt-00000001.ps-0-shard-0")));
  EXPECT_EQ(read_manifest(chain.disk, chain.path(3)), before);
  EXPECT_THAT(chain.memory.list("c/ckpt-00000003.consolidating"), IsEmpty());
}

TEST(Consolidation, IsRefusedWhereRowsWouldLoseByIt) {
  MemoryChain chain;
  chain.save(1);
  Manifest manifest = read_manifest(chain.disk, chain.path(1));
  manifest.variables[0].row_form = RowForm::kInt8;
  commit(chain.disk, chain.path(1), manifest);
  EXPECT_THROW(Consolidation(chain.disk, chain.store, chain.path(1)), UnimplementedError);
}

// A ps may still be reading those of the newest ones.
TEST(Consolidation, ReplacedDatabasesGoOnceTheCheckpointIsAmongTheOldOnesThatStay) {
  MemoryChain chain;
  for (std::uint64_t id = 1; id <= 2; ++id) chain.save(id);
  {
    Consolidation work(chain.disk, chain.store, chain.path(2));
    write_all(work);
    work.put_into(chain.path(2));
  }
  chain.save(3);
  const std::string before = chain.content(2);
  CheckpointFolder folder(chain.disk, "c");
  folder.prune(2, {}, 2);
  EXPECT_TRUE(chain.disk.exists("c/ckpt-00000002/ps-0-shard-0/rows"));
  folder.prune(1, {}, 2);
  EXPECT_THAT(chain.disk.list("c/ckpt-00000002"), ElementsAre("MANIFEST.json", "full-0", "full-1"));
  EXPECT_EQ(chain.content(2), before);
  chain.expect_sound(2);
}

}  // namespace
}  // namespace cairn::storage
