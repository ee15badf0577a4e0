// The state of a table's rows at one moment, read while they go on changing.
#include "ps/snapshot/snapshot.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <numeric>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr std::int64_t kSnapshotDim = 1024;  // 16 rows of 4 KB are a block

// Rows and a snapshot of them, kept in step as a table does.
class SnapshotOf {
 public:
  explicit SnapshotOf(std::int64_t rows, bool hashed = false) : memory(make(rows, hashed)) {}

  // Sets rows to `value`.
  void assign(const Ids& rows, float value) {
    const Places places = memory.make(memory.find(rows));
    snapshot.grew();
    snapshot.before_write(places.at);
    snapshot.touch(places);
    const Floats values(rows.size() * kSnapshotDim, value);
    memory.update({RuleKind::kAssign, {}}, 1, places,
                  reinterpret_cast<const std::byte*>(values.data()));
  }
  // Takes all blocks: each row with its first parameter, in the order in which they come.
  std::vector<std::pair<std::int64_t, float>> take_all() {
    std::vector<std::pair<std::int64_t, float>> rows;
    while (const auto taken = snapshot.take())
      for (std::size_t i = 0; i < taken->offsets.size(); ++i) {
        float first = 0;
        std::memcpy(&first, taken->data.data() + i * taken->row_bytes(), sizeof first);
        rows.emplace_back(taken->first_row + static_cast<std::int64_t>(taken->offsets[i]), first);
      }
    return rows;
  }

  RowMemory memory;
  CopyPool pool;
  Snapshot snapshot{memory, pool};

 private:
  static RowMemory make(std::int64_t rows, bool hashed) {
    VariableSpec spec{.name = "w", .shape = {rows, kSnapshotDim}};
    spec.hashed = hashed;
    return {std::make_shared<const VariableSpec>(std::move(spec)), {}, {0, rows}, 42};
  }
};

TEST(Snapshot, HoldsTheRowsAsTheyWereWhenItWasFrozen) {
  SnapshotOf table(64);
  table.assign({1, 40}, 1);
  table.snapshot.freeze();
  table.assign({1, 2, 50}, 2);
  EXPECT_THAT(table.take_all(), ElementsAre(Pair(1, 1), Pair(40, 1)));
  table.snapshot.freeze();
  EXPECT_THAT(table.take_all(), ElementsAre(Pair(1, 2), Pair(2, 2), Pair(40, 1), Pair(50, 2)));
}

TEST(Snapshot, CopiesARowOnceAndOnlyBeforeItsBlockIsTaken) {
  SnapshotOf table(64);
  table.assign({1, 40}, 1);
  table.snapshot.freeze();
  EXPECT_EQ(table.snapshot.copied_bytes(), 0u);
  table.assign({1, 2}, 2);
  table.assign({1, 3}, 3);
  EXPECT_EQ(table.snapshot.copied_bytes(),
            kSnapshotDim * sizeof(float));  // of row 1, which was touched
  table.take_all();
  EXPECT_EQ(table.snapshot.copied_bytes(), 0u);
  table.assign({1, 40}, 4);
  EXPECT_EQ(table.snapshot.copied_bytes(), 0u);
}

TEST(Snapshot, AWriteToEveryRowCopiesWhatWasTouched) {
  SnapshotOf table(64);
  table.assign({1, 40}, 1);
  table.snapshot.freeze();
  table.snapshot.before_write_all();
  table.snapshot.touch_all();
  EXPECT_EQ(table.snapshot.copied_bytes(), 2 * kSnapshotDim * sizeof(float));
  EXPECT_THAT(table.take_all(), ElementsAre(Pair(1, 1), Pair(40, 1)));
  table.snapshot.freeze();
  EXPECT_THAT(table.take_all(), SizeIs(64));
}

TEST(Snapshot, OfRowsThatWereNeverTouchedThereIsNothing) {
  SnapshotOf table(64);
  table.snapshot.freeze();
  EXPECT_THAT(table.take_all(), IsEmpty());
  table.assign({1}, 1);
  table.snapshot.touched_rows().clear();
  table.snapshot.freeze();
  EXPECT_THAT(table.take_all(), IsEmpty());
}

// They lie in the order in which they came; a checkpoint has them in that of their numbers.
TEST(Snapshot, RowsOfAHashedTableThatCameSinceAreNotInIt) {
  SnapshotOf table(1 << 20, true);
  Ids later(16);
  std::iota(later.begin(), later.end(), 500);
  table.assign(later, 1);        // the first block
  table.assign({9, 5, 600}, 1);  // part of the second
  table.snapshot.freeze();
  table.assign({3, 700, 9}, 2);
  const auto taken = table.take_all();
  EXPECT_THAT(taken, SizeIs(19));
  EXPECT_THAT(std::span(taken).first(4),
              ElementsAre(Pair(5, 1), Pair(9, 1), Pair(500, 1), Pair(501, 1)));
}

TEST(Snapshot, RowsThatAreLaidAnewStayInItAsTheyWere) {
  for (const bool hashed : {false, true}) {
    SnapshotOf table(64, hashed);
    table.assign({1, 40}, 1);
    table.snapshot.freeze();
    table.snapshot.before_new_layout();
    table.memory.set_rule(adagrad());
    table.snapshot.laid_anew();
    table.assign({1, 2}, 2);
    EXPECT_TRUE(table.snapshot.record().slots.empty());
    EXPECT_THAT(table.take_all(), ElementsAre(Pair(1, 1), Pair(40, 1)));
    table.snapshot.freeze();
    EXPECT_THAT(table.snapshot.record().slots, ElementsAre("accumulator"));
    EXPECT_THAT(table.take_all(), ElementsAre(Pair(1, 2), Pair(2, 2), Pair(40, 1)));
  }
}

TEST(Snapshot, ThawingLetsGoOfTheCopies) {
  SnapshotOf table(64);
  table.assign({1}, 1);
  table.snapshot.freeze();
  table.assign({1}, 2);
  table.snapshot.thaw();
  EXPECT_EQ(table.snapshot.copied_bytes(), 0u);
  table.assign({1}, 3);
  EXPECT_EQ(table.snapshot.copied_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::ps
