// Copies of a shard that compare their rows with the primary's.
#include <gmock/gmock.h>

#include "tests/ps/replica/random_pushes.h"
#include "tests/ps/replica/three_ps.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// Compares all rows, `bytes` of them at a time. The differences that are named.
std::vector<std::string> differences(CopiedShard& both, std::size_t bytes) {
  std::vector<std::string> found;
  while (both.compare_slice(bytes)) {
    try {
      both.replay_all();
    } catch (const DataLossError& error) {
      found.emplace_back(error.what());
      both.told.clear();
    }
  }
  return found;
}

void copy_all(CopiedShard& both) {
  both.begin();
  while (both.copy_block(1 << 20)) {
  }
  both.replay_all();
}

// The backup's row, with its slots, as it is; and with one bit of it flipped.
storage::StoredRows with_flipped_bit(CopiedShard& both, std::size_t table, std::int64_t place,
                                     std::size_t bit) {
  storage::StoredRows row =
      both.primary.shard.describe().tables[table].second->rows_at({place, place + 1});
  row.data[bit / 8] ^= std::byte{1} << bit % 8;
  return row;
}

TEST(RowSums, AreTheSameWhereverTheyAreTakenInTheLog) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draws draws(seed);
    CopiedShard both(three_tables());
    std::uint64_t closure = 1;
    for (std::int64_t i = draws.below(40); i > 0; --i) push_at_random(both, draws, closure++);
    both.begin();
    while (both.copy_block(100)) push_at_random(both, draws, closure++);
    const auto bytes = static_cast<std::size_t>(draws.below(3000));
    while (both.compare_slice(bytes)) push_at_random(both, draws, closure++);
    EXPECT_NO_THROW(both.replay_all());
  }
}

TEST(RowSums, AFlippedBitIsFoundAndNamedAndNothingElse) {
  Draws draws(1);
  CopiedShard both(three_tables());
  for (std::uint64_t closure = 1; closure < 40; ++closure) push_at_random(both, draws, closure);
  copy_all(both);
  ASSERT_THAT(differences(both, 1000), IsEmpty());
  const auto all = both.primary.shard.describe().tables;
  for (int flip = 0; flip < 200; ++flip) {
    const auto which = static_cast<std::size_t>(draws.below(3));
    const auto& [id, table] = all[which];
    const std::int64_t place = draws.below(table->held());
    const auto bit = static_cast<std::size_t>(
        draws.below(static_cast<std::int64_t>(table->saved_row_bytes()) * 8));
    const storage::StoredRows flipped = with_flipped_bit(both, which, place, bit);
    SCOPED_TRACE(testing::Message() << "bit " << bit << " of row " << flipped.first_row << " of "
                                    << table->spec().name);
    ShardCopy(both.backup).put(id, flipped);
    EXPECT_THAT(differences(both, 1000),
                ElementsAre(AllOf(HasSubstr("'" + table->spec().name + "'"), HasSubstr("rows "))));
    ShardCopy(both.backup).put(id, table->rows_at({place, place + 1}));
    ASSERT_THAT(differences(both, 1000), IsEmpty());
  }
}

TEST(RowSums, TheRowsThatDifferAreAmongThoseThatAreNamed) {
  CopiedShard both(three_tables());
  copy_all(both);
  ShardCopy(both.backup).put({0, 0}, with_flipped_bit(both, 0, 130, 0));
  EXPECT_THAT(differences(both, 1 << 20),
              ElementsAre(HasSubstr("variable 'dense': this copy has other values in rows 128 to "
                                    "191")));
}

TEST(RowSums, ARowThatACopyLacksOrHasTooManyIsFound) {
  CopiedShard both(three_tables());
  both.primary.push(both.primary.step(1), 1, {5, 9}, Floats(6, 1), lazy_adam());
  copy_all(both);
  const storage::StoredRows fifth = both.primary.shard.describe().tables[1].second->rows_at({0, 1});

  both.told.clear();
  storage::StoredRows other = fifth;
  other.first_row = 77;
  ShardCopy(both.backup).put({1, 0}, other);
  EXPECT_THAT(differences(both, 1 << 20), ElementsAre(HasSubstr("has 3 rows, and not 2")));

  both.begin();
  both.told.resize(1);  // the books alone: all rows are at their initial values
  both.replay_all();
  EXPECT_THAT(differences(both, 1 << 20),
              ElementsAre(HasSubstr("variable 'hashed': row 5 is not in this copy")));
}

TEST(RowSums, ATableThatIsLaidOutForAnotherRuleIsNotCompared) {
  CopiedShard both(three_tables());
  copy_all(both);
  auto tables = three_tables();
  tables[0].rule = UpdateRule{RuleKind::kFtrl, {}};
  both.configure_backup(tables);
  EXPECT_THAT(differences(both, 1 << 20), IsEmpty());
}

TEST(RowSums, SumsOfRowsThatATableDoesNotHaveAreRefused) {
  CopiedShard both(three_tables());
  both.primary.push(both.primary.step(1), 1, {5, 9}, Floats(6, 1), lazy_adam());
  copy_all(both);
  const auto all = both.primary.shard.describe().tables;
  const SummedRows dense = sum_up(*all[0].second, {0, 200}),
                   hashed = sum_up(*all[1].second, {0, 2});
  const auto refused = [&](TableId id, const SummedRows& rows, auto change) {
    SummedRows changed = rows;
    change(changed);
    EXPECT_THROW(ShardCopy(both.backup).compare(id, changed), InvalidArgumentError);
  };
  EXPECT_NO_THROW(ShardCopy(both.backup).compare({0, 0}, dense));
  EXPECT_NO_THROW(ShardCopy(both.backup).compare({1, 0}, hashed));
  refused({0, 0}, dense, [](SummedRows& rows) { rows.begin = 1; });
  refused({0, 0}, dense, [](SummedRows& rows) { rows.begin = -1; });
  refused({0, 0}, dense, [](SummedRows& rows) { rows.sums.pop_back(); });
  refused({0, 0}, dense, [](SummedRows& rows) { rows.rows = 0, rows.sums.clear(); });
  refused({0, 0}, dense, [](SummedRows& rows) { rows.numbers = {1}; });
  refused({1, 0}, hashed, [](SummedRows& rows) { rows.numbers.pop_back(); });
  refused({1, 0}, hashed, [](SummedRows& rows) { rows.numbers = {9, 5}; });
  refused({1, 0}, hashed, [](SummedRows& rows) { rows.numbers = {5, 5}; });
  refused({1, 0}, hashed, [](SummedRows& rows) { rows.numbers = {-1, 5}; });
  refused({1, 0}, hashed, [](SummedRows& rows) { rows.numbers = {5, 1 << 20}; });
}

TEST(RowComparison, BackupsThatFollowAreFoundEqual) {
  ThreePs ps(20000);
  ps.set_backups({1, 2});
  ps.until_caught_up();
  const std::uint64_t version = ps.news(0).version;
  for (std::uint64_t closure = 1; closure < 40; ++closure) {
    ps.push(closure, 0.5f);
    ps.reactor.wait(ps.reactor.sleep(5s));
  }
  const BackupNews now = ps.news(0);
  EXPECT_EQ(now.version, version);
  EXPECT_THAT(now.troubles, ElementsAre("", ""));
}

// The third ps made its rows from other initial values.
TEST(RowComparison, ABackupWithOtherRowsIsReportedAsSoonAsItHasCaughtUp) {
  ThreePs ps;
  ps.clients[2]->configure({whole_table(0, variable("v", {400, 4}), adagrad())}, 8);
  ps.clients[2]->configure({whole_table(0, variable("v", {400, 4}), adagrad())});
  ps.set_backups({1, 2});
  BackupNews now = ps.news(0);
  const Duration before = ps.reactor.now();
  while (now.troubles[1].empty() && ps.reactor.now() < before + 5s) now = ps.news(now.version);
  EXPECT_THAT(now.troubles[1], AllOf(HasSubstr("'v'"), HasSubstr("other values in rows 0 to 63")));
  EXPECT_EQ(now.troubles[0], "");
}

}  // namespace
}  // namespace cairn::ps
