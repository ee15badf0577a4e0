// RestoringRows: the RowSource of tables that are restored on demand. Their shard is open while
// most of their rows are still in a checkpoint: a request waits until its own rows have been
// fetched, and the others follow by and by.
//
//   Which rows have come  Of a dense table a bit for each row says so. A hashed table has a row in
//            memory once it has come; one that is not there may be in the checkpoint until it was
//            looked for, or all have come.
//   Once     A row is put once, from the newest database that holds it, and never after a request
//            had it: whoever brings rows, a fetch or the stream of all of them, only those count
//            that have not come yet.
//   All      Who wants every row of a table waits until the last has come. Requests name that by
//            the row number kEveryRow, and have the table come before others.
//   Thread   the shard's own.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/rows/id_index.h"
#include "ps/shard/row_source.h"
#include "ps/table/table.h"
#include "storage/row_block.h"

namespace cairn::ps {

// Where the rows of a restore come from. Thread: the shard's own.
class CheckpointRows {
 public:
  virtual ~CheckpointRows() = default;
  // Reads these rows, local, ascending and distinct, of which the checkpoint may lack some. `done`
  // is called once, later and never from inside, unless the shard's process ends before that.
  using Done =
      std::function<void(const std::vector<storage::StoredRows>& rows, std::exception_ptr error)>;
  virtual void read(const Table& table, const std::vector<std::int64_t>& rows, Done done) = 0;
  // Requests wait for every row of this table.
  virtual void hurry(const Table& table) = 0;
};

class RestoringRows final : public RowSource {
 public:
  // Puts rows into their table, whichever of them are that table's.
  using Put = std::function<void(Table&, const storage::StoredRows&, Table::Slots)>;
  explicit RestoringRows(Put put) : put_(std::move(put)) {}

  // ---- the restore ----
  // No row of the table has come. `restore` names the restore that it takes part in.
  void begin(Table& table, std::uint64_t restore, std::shared_ptr<CheckpointRows> from,
             Table::Slots slots);
  bool any() const { return !tables_.empty(); }
  bool has(const Table& table) const { return tables_.contains(&table); }
  bool has(const Table& table, std::uint64_t restore) const;
  // Rows as the checkpoint has them, newer ones before older ones. The table is one of `has()`.
  void put(Table& table, const storage::StoredRows& rows);
  // That was all of the table's: rows that have not come are at their initial values.
  void end(Table& table);
  // No row comes any more. Requests that want some end with this error, now and later.
  void fail(std::uint64_t restore, std::exception_ptr error);
  // From now on rows come without slots: the table has those of another rule.
  void slots_changed(const Table& table);
  void hurry(const Table& table);
  // The names of the variables that some rows are missing of; the error that keeps them away.
  std::string names() const;
  std::exception_ptr error() const;

  // ---- requests ----
  static constexpr std::int64_t kEveryRow = -1;  // instead of a row's number
  void find_elsewhere(const WantedRows& wanted, Access access,
                      std::vector<std::int64_t>& elsewhere) override;
  void fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) override;
  void reset(Table& table) override;

 private:
  struct Coming {
    std::uint64_t restore = 0;
    std::shared_ptr<CheckpointRows> from;
    Table::Slots slots = Table::Slots::kTake;
    std::vector<std::uint64_t> here;  // dense: a bit for each row that has come
    IdIndex not_there;                // hashed: rows that the checkpoint lacks, which is known
    std::vector<Fetched> whole;       // wait for every row
    std::exception_ptr error;
    bool has_come(std::int64_t row) const {
      return (here[static_cast<std::size_t>(row) >> 6] >> (row & 63) & 1) != 0;
    }
    void set_come(std::int64_t row) {
      here[static_cast<std::size_t>(row) >> 6] |= std::uint64_t{1} << (row & 63);
    }
  };
  Coming* find(const Table* table, std::uint64_t restore);
  void add_missing(Table& table, const Coming& coming, std::span<const std::int64_t> rows,
                   std::vector<std::int64_t>& missing);
  void put_missing(Table& table, Coming& coming, const storage::StoredRows& rows);
  void note_looked_for(Table& table, Coming& coming, const std::vector<std::int64_t>& rows);

  Put put_;
  std::map<const Table*, Coming> tables_;
  std::vector<std::int64_t> missing_, absent_, places_;
  // Reads may end after this object has.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::ps
