#include "storage/moved_rows.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "storage/saved_ids.h"
#include "tests/storage/fixture.h"

namespace cairn::storage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RowMove move_to(RowNumbers numbers, bool slots = true) {
  return {.from = "a",
          .slots = slots,
          .rows = 100,
          .numbers = std::make_shared<const RowNumbers>(std::move(numbers))};
}
// The first parameter of each row: its old number, by some_rows().
std::vector<float> first_values(const StoredRows& rows) {
  std::vector<float> values;
  for (std::size_t i = 0; i < rows.offsets.size(); ++i)
    values.push_back(*reinterpret_cast<const float*>(rows.data.data() + i * rows.row_bytes()));
  return values;
}

TEST(MovedRows, StandInTheOrderOfTheirNewNumbersWithoutThoseThatWent) {
  StoredRows rows = some_rows(1, {0, 1, 3});  // rows 1, 2 and 4
  move_rows(rows, move_to({9, 30, kRowGone, 0, 7}));
  EXPECT_EQ(rows.first_row, 7);
  EXPECT_THAT(rows.offsets, ElementsAre(0, 23));
  const std::vector<float> values = first_values(rows);
  EXPECT_FLOAT_EQ(values[0], 4);
  EXPECT_FLOAT_EQ(values[1], 1);
}

TEST(MovedRows, MayAllBeGone) {
  StoredRows rows = some_rows(0, {0, 1});
  move_rows(rows, move_to({kRowGone, kRowGone}));
  EXPECT_TRUE(rows.offsets.empty());
  EXPECT_TRUE(rows.data.empty());
}

TEST(MovedRows, WithoutSlotsKeepTheirParameters) {
  StoredRows rows = some_rows(5, {0, 2});
  const StoredRows before = rows;
  move_rows(rows, {.from = "a", .slots = false, .rows = 100});
  EXPECT_EQ(rows.slots, 0u);
  EXPECT_EQ(rows.data.size(), 2 * 4 * sizeof(float));
  const auto* values = reinterpret_cast<const float*>(rows.data.data());
  const auto* old = reinterpret_cast<const float*>(before.data.data());
  for (std::size_t row : {0, 1})
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(values[row * 4 + i], old[row * 8 + i]);
}

TEST(MovedRows, ThatTheirVariableDoesNotHaveAreDamage) {
  StoredRows rows = some_rows(0, {0, 5});
  EXPECT_THROW(move_rows(rows, move_to({0, 1, 2})), DataLossError);
}

TEST(MovedRows, MayNotMeet) {
  StoredRows rows = some_rows(0, {0, 1});
  EXPECT_THROW(move_rows(rows, move_to({4, 4})), InvalidArgumentError);
}

TEST(MovedRecord, IsOfTheOtherVariableAndCountsNoUpdatesWithoutSlots) {
  TableRecord record = some_table("a", {100, 200});
  move_record(record, "b", {.from = "a", .rows = 3000});
  EXPECT_EQ(record.variable, "b");
  EXPECT_EQ(record.shape, (Shape{3000, 4}));
  EXPECT_EQ(record.updates, 17);
  move_record(record, "b", {.from = "a", .slots = false, .rows = 3000});
  EXPECT_EQ(record.updates, 0);
  EXPECT_EQ(record.rule, UpdateRule{});
  EXPECT_TRUE(record.slots.empty());
}

TEST(RowsToRead, AreAllWhereAnyMayBecomeOneThatIsWanted) {
  EXPECT_EQ(rows_to_read({5, 10}, {.from = "a", .rows = 20}), (RowRange{5, 10}));
  EXPECT_EQ(rows_to_read({5, 10}, move_to({1, 2, 3})), (RowRange{0, 3}));
}

TEST(SavedIds, ThatDoNotFitAreCountedAndTheLowestIsNamed) {
  MemoryDisk disk;
  const auto store = make_memory_row_store(disk);
  write_checkpoint(disk, *store, "/c");
  verify_ids(*store, "/c", {"ps-0-shard-0"}, {"b", "dense", 1000});
  verify_ids(*store, "/c", {"ps-0-shard-0"}, {"absent", "dense", 1});
  try {
    verify_ids(*store, "/c", {"ps-0-shard-0"}, {"b", "dense", 950});
    FAIL();
  } catch (const FailedPreconditionError& error) {
    // Rows 900, 903, ... 999 are there.
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"dense\" has 950 rows"), HasSubstr("\"b\""),
                                    HasSubstr("holds 17 ids"), HasSubstr("the lowest 951")));
  }
}

}  // namespace
}  // namespace cairn::storage
