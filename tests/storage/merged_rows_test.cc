#include "storage/merged_rows.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "storage/checkpoint_writer.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

VariableInfo merged_variable() {
  return {.name = "v",
          .shape = Shape{1000, 4},
          .rule = {RuleKind::kAdagrad, {0.1f}},
          .slots = {"accumulator"},
          .parts = {{0, 1000}}};
}

// A database that holds these rows, each of whose elements is `value`.
void write_rows(RowStore& store, const std::string& folder, const std::vector<std::int64_t>& rows,
                float value, std::int64_t updates) {
  CheckpointWriter writer(store, folder_of(folder), {folder.substr(folder.rfind('/') + 1)});
  writer.begin(merged_variable(), updates);
  RowBatch batch;
  batch.rows = rows;
  const std::vector<float> values(rows.size() * 8, value);
  batch.data.resize(values.size() * sizeof(float));
  std::memcpy(batch.data.data(), values.data(), batch.data.size());
  writer.add(batch);
  writer.finish();
}

struct Merge {
  std::vector<std::int64_t> rows;
  std::vector<float> first;  // elements of the rows
  std::int64_t updates = 0;
};
Merge merge(RowStore& store, const std::vector<std::string>& databases, RowRange range) {
  std::vector<std::unique_ptr<DatabaseReader>> readers;
  std::vector<DatabaseReader*> borrowed;
  for (const std::string& database : databases) {
    readers.push_back(store.open(database));
    borrowed.push_back(readers.back().get());
  }
  MergedRows rows(borrowed, merged_variable(), range);
  Merge found;
  found.updates = rows.updates();
  for (RowBatch batch; rows.next(batch);)
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      found.rows.push_back(batch.rows[i]);
      float value;
      std::memcpy(&value, batch.data.data() + i * rows.form().bytes(), sizeof value);
      found.first.push_back(value);
    }
  return found;
}

TEST(MergedRows, RowsOfAllDatabasesComeInOrderAndTheLaterDatabaseWins) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_rows(*store, "f/base", {1, 2, 5, 9, 10}, 1, 7);
  write_rows(*store, "f/delta", {2, 3, 10}, 2, 9);
  write_rows(*store, "f/newer", {3, 999}, 3, 8);
  const Merge all = merge(*store, {"f/base", "f/delta", "f/newer"}, {0, 1000});
  EXPECT_THAT(all.rows, ElementsAre(1, 2, 3, 5, 9, 10, 999));
  EXPECT_THAT(all.first, ElementsAre(1, 2, 3, 1, 1, 2, 3));
  EXPECT_EQ(all.updates, 9);
  const Merge some = merge(*store, {"f/base", "f/delta", "f/newer"}, {2, 10});
  EXPECT_THAT(some.rows, ElementsAre(2, 3, 5, 9));
}

TEST(MergedRows, ManyBlocksKeepTheirOrderInWhateverPiecesTheyCome) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  std::vector<std::int64_t> even, third, either;
  for (std::int64_t row = 0; row < 1000; ++row) {
    if (row % 2 == 0) even.push_back(row);
    if (row % 3 == 0) third.push_back(row);
    if (row % 2 == 0 || row % 3 == 0) either.push_back(row);
  }
  write_rows(*store, "f/a", even, 1, 1);
  write_rows(*store, "f/b", third, 2, 1);
  const Merge found = merge(*store, {"f/a", "f/b"}, {0, 1000});
  EXPECT_EQ(found.rows, either);
  for (std::size_t i = 0; i < either.size(); ++i)
    EXPECT_EQ(found.first[i], either[i] % 3 == 0 ? 2 : 1) << either[i];
}

TEST(MergedRows, ABlockFromBeforeTheRuleHasTheSlotsInitialValues) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  const auto writer = store->create("f/old");
  const std::string table = encode(RecordKey{"v", RecordKind::kTable, 0});
  writer->put(table, encode(table, some_table("v", {0, 1000})));
  const std::string key = encode(RecordKey{"v", RecordKind::kRows, 4});
  writer->put(key, encode(key, StoredRows{.dim = 4,
                                          .first_row = 4,
                                          .offsets = {0},
                                          .data = std::vector<std::byte>(16)}));
  writer->finish();
  const auto reader = store->open("f/old");
  MergedRows rows({reader.get()}, merged_variable(), {0, 1000});
  RowBatch batch;
  ASSERT_TRUE(rows.next(batch));
  std::vector<float> values(8);
  ASSERT_EQ(batch.data.size(), 32u);
  std::memcpy(values.data(), batch.data.data(), 32);
  const float initial = rule_slots(merged_variable().rule).at(0).initial_value;
  EXPECT_THAT(values, ElementsAre(0, 0, 0, 0, initial, initial, initial, initial));
}

TEST(MergedRows, RowsOfAnotherFormThanTheManifestSaysAreRefusedWithTheirFile) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_database(*store, "db");
  const auto reader = store->open("db");
  VariableInfo variable = merged_variable();
  variable.name = "a";
  variable.shape = Shape{1000, 5};
  EXPECT_THAT(
      [&] {
        MergedRows({reader.get()}, variable, {0, 1000});
      },
      testing::ThrowsMessage<DataLossError>(
          testing::AllOf(HasSubstr("db/rows"), HasSubstr("\"a\" at row 0"))));
}

TEST(MergedRows, OverlappingBlocksOfAnEarlierReleaseAreRefusedWithTheCure) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  const auto writer = store->create("db");
  const std::string key = encode(RecordKey{"v", RecordKind::kTable, 0});
  TableRecord table = some_table("v", {0, 1000});
  table.blocks_overlap = true;
  writer->put(key, encode(key, table));
  writer->finish();
  const auto reader = store->open("db");
  EXPECT_THAT(
      [&] {
        MergedRows({reader.get()}, merged_variable(), {0, 1000});
      },
      testing::ThrowsMessage<UnimplementedError>(HasSubstr("let it save once")));
}

TEST(CheckpointWriter, CutsRowsIntoAPartForEachDatabaseAndRefusesThoseOutOfOrder) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointWriter writer(*store, "f", {"0", "1", "2"});
  EXPECT_THAT(writer.begin(merged_variable(), 5),
              ElementsAre(RowRange{0, 334}, RowRange{334, 667}, RowRange{667, 1000}));
  RowBatch batch;
  batch.rows = {0, 333, 334, 900};
  batch.data.resize(4 * 32);
  writer.add(batch);
  batch.rows = {900};
  EXPECT_THROW(writer.add(batch), InvalidArgumentError);
  batch.rows = {1000};
  EXPECT_THROW(writer.add(batch), InvalidArgumentError);
  const std::vector<DatabaseInfo> made = writer.finish();
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0].rows, 2u);
  EXPECT_EQ(made[1].rows, 1u);
  EXPECT_EQ(made[2].rows, 1u);
  EXPECT_THAT(merge(*store, {"f/0", "f/1", "f/2"}, {0, 1000}).rows, ElementsAre(0, 333, 334, 900));
}

TEST(CheckpointWriter, VariablesWithFewerRowsThanDatabasesHaveFewerParts) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  CheckpointWriter writer(*store, "f", {"0", "1"});
  EXPECT_THAT(writer.begin({.name = "scalar"}, 0), ElementsAre(RowRange{0, 1}));
  writer.finish();
}

// Writes a delta's own database, which says this of rows besides those that it holds.
void write_said(RowStore& store, const std::string& folder, bool whole,
                const std::vector<std::int64_t>& gone) {
  const auto writer = store.create(folder);
  const VariableInfo v = merged_variable();
  std::string key = encode(RecordKey{"v", RecordKind::kTable, 0});
  TableRecord table{"v", v.dtype, v.shape, v.rule, v.slots, {0, 1000}, 9};
  table.whole = whole;
  writer->put(key, encode(key, table));
  if (!gone.empty()) {
    GoneRows rows{gone[0], {}};
    for (const std::int64_t row : gone)
      rows.offsets.push_back(static_cast<std::uint64_t>(row - gone[0]));
    key = encode(RecordKey{"v", RecordKind::kGone, gone[0]});
    writer->put(key, encode(key, rows));
  }
  writer->finish();
}

TEST(MergedRows, WithoutThoseThatHaveGoneSinceTheDatabaseThatHoldsThem) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_rows(*store, "c/base", {1, 2, 5, 900}, 1, 3);
  write_said(*store, "c/first", false, {2, 5, 7});
  write_rows(*store, "c/second", {5}, 2, 4);  // came again
  write_said(*store, "c/third", false, {900});
  const Merge all = merge(*store, {"c/base", "c/first", "c/second", "c/third"}, {0, 1000});
  EXPECT_THAT(all.rows, ElementsAre(1, 5));
  EXPECT_THAT(all.first, ElementsAre(1, 2));
  EXPECT_THAT(merge(*store, {"c/base", "c/first"}, {2, 901}).rows, ElementsAre(900));
}

TEST(MergedRows, OfAPartThatADeltaHasWholeAreTheDeltasAlone) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_rows(*store, "c/base", {1, 2, 5, 900}, 1, 3);
  write_said(*store, "c/delta", true, {});
  write_rows(*store, "c/delta-run-0", {2, 6}, 2, 4);
  const Merge all = merge(*store, {"c/base", "c/delta", "c/delta-run-0"}, {0, 1000});
  EXPECT_THAT(all.rows, ElementsAre(2, 6));
  EXPECT_THAT(all.first, ElementsAre(2, 2));
}

}  // namespace
}  // namespace cairn::storage
