// The weights of a model, copied from a checkpoint.
#include "model/saved/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/disk/memory_disk.h"
#include "storage/manifest.h"
#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;

// Rows 0 to `end` of a variable of four, in a database of their own.
storage::DatabaseInfo write_rows(storage::RowStore& store, const std::string& name,
                                 std::uint64_t end) {
  const auto writer = store.create("c/" + name);
  const std::string table = storage::encode({"v", storage::RecordKind::kTable, 0});
  writer->put(table, storage::encode(table, storage::TableRecord{.variable = "v",
                                                                 .dtype = DType::kFloat32,
                                                                 .shape = {4, 1},
                                                                 .rule = {},
                                                                 .slots = {},
                                                                 .rows = {0, 4}}));
  storage::StoredRows rows{.dtype = DType::kFloat32, .dim = 1};
  for (std::uint64_t row = 0; row < end; ++row) rows.offsets.push_back(row);
  rows.data.resize(4 * end);
  const std::string key = storage::encode({"v", storage::RecordKind::kRows, 0});
  writer->put(key, storage::encode(key, rows));
  storage::DatabaseInfo made = storage::group_by_database(writer->finish()).at(0);
  made.rows = end;
  return made;
}

// Three rows and one of them again are four, and yet row 3 has its initial value.
TEST(ModelWeights, OfADeltaAreNotTakenForEveryRowOfAVariable) {
  MemoryDisk disk;
  const LocalPlace place{disk, storage::make_memory_row_store(disk)};
  storage::Manifest manifest;
  manifest.variables.push_back({.name = "v", .shape = {4, 1}, .parts = {{0, 4}}});
  manifest.databases.push_back(write_rows(*place.store, "ckpt-00000001.ps-0-shard-0", 3));
  const VariableSpec v{.name = "v", .shape = {4, 1}};
  storage::commit(disk, "c", manifest);
  EXPECT_THAT(copy_weights(place, "c", {v}, "full").rows, ElementsAre(3));

  manifest.base = "ckpt-00000001";
  manifest.databases.push_back(write_rows(*place.store, "ps-0-shard-0", 1));
  storage::commit(disk, "c", manifest);
  EXPECT_THAT(copy_weights(place, "c", {v}, "delta").rows, ElementsAre(0));
}

}  // namespace
}  // namespace cairn
