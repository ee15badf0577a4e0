// A shard and a copy of it, which follows in this process: what the one tells its log, the other
// replays when the test says so.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "ps/replica/log_record.h"
#include "ps/replica/row_copier.h"
#include "ps/replica/row_summer.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

class CopiedShard final : public ChangeLog {
 public:
  explicit CopiedShard(std::vector<TableConfig> tables)
      : primary(tables, {.lineage = 100, .log = this}), backup(clock_, {.lineage = 200}) {
    configure_backup(std::move(tables));
  }

  bool wanted() const override { return following_; }
  bool wants_shares() const override { return with_shares_; }
  void changed(RowChange& change) override { told.push_back(record_of(change, buffers_)); }
  void announced(std::uint64_t closures_below, std::uint64_t settled_below) override {
    told.push_back(record_of_announced(closures_below, settled_below));
  }
  void begins_anew() override { anew = true; }

  void begin(bool with_shares = false) {
    following_ = true;
    with_shares_ = with_shares;
    ShardBooks books = primary.shard.books();
    books.with_shares = with_shares;
    told.push_back(record_of(books));
    copier_.emplace(primary.shard);
    if (!with_shares) return;
    for (RowChange& share : ShardCopy(primary.shard).shares())
      told.push_back(record_of(share, buffers_));
  }
  // The copy compares a slice of its rows with the primary's of now. False: that were all.
  bool compare_slice(std::size_t bytes) {
    const auto slice = summer_.next(bytes);
    if (slice) told.push_back(record_of(slice->table, slice->rows, buffers_));
    return slice.has_value();
  }
  // False: that were all rows.
  bool copy_block(std::size_t bytes) {
    const auto block = copier_->next(bytes);
    if (block) told.push_back(record_of(block->table, block->variable, block->rows, buffers_));
    return block.has_value();
  }
  void replay_one() {
    replay(backup, told.front()->head().asReader(), told.front()->payload());
    told.pop_front();
  }
  void replay_all() {
    while (!told.empty()) replay_one();
  }
  // The copy answers for the rows from now on.
  void promote(Epoch epoch = 2) {
    backup.configure({ShardHarness::kSession, 2, 42, {}, epoch});
    backup.announce(ShardHarness::kSession, ShardHarness::kClosures, 0);
    backup.open();
  }
  void configure_backup(std::vector<TableConfig> tables) {
    backup.configure({ShardHarness::kSession, 1, 42, std::move(tables), ShardHarness::kEpoch});
  }

  std::deque<std::shared_ptr<LogRecord>> told;
  bool anew = false;

 private:
  bool following_ = false, with_shares_ = false;
  ManualClock clock_;
  rpc::BufferPool buffers_;
  std::optional<RowCopier> copier_;

 public:
  ShardHarness primary;  // after what it uses as its log
  Shard backup;

 private:
  RowSummer summer_{primary.shard};
};

// All rows of an open shard's tables, with their slots, as bytes.
inline std::vector<std::vector<std::byte>> all_rows(const Shard& shard) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& [id, table] : shard.describe().tables) {
    // Rows of a hashed table lie in the order in which they came, which a copy need not have.
    std::vector<std::byte> bytes;
    const storage::StoredRows rows = table->rows_at({0, table->held()});
    const auto* numbers = reinterpret_cast<const std::byte*>(rows.offsets.data());
    bytes.assign(numbers, numbers + rows.offsets.size() * sizeof(rows.offsets[0]));
    bytes.insert(bytes.end(), rows.data.begin(), rows.data.end());
    all.push_back(std::move(bytes));
  }
  return all;
}

}  // namespace cairn::ps
