// SortedRuns: the rows of a shard's save that come in no order, as databases of sorted ones.
//
//   A database's keys ascend, and rows that lie on a disk are best read as they lie there. As
//   many as fit into a bound of memory are sorted, and are a database of their own: a run. Each has
//   rows of all the number range, none has a row of another, and a restore reads of each only its
//   range.
//   Source  external sorting: Knuth, "Sorting and Searching", 5.4.
//   Thread  one at a time; calls block on the disk.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ps/server/checkpoint_tasks.h"
#include "storage/row_block.h"
#include "storage/row_encoding.h"
#include "storage/row_store.h"

namespace cairn::ps {

class SortedRuns {
 public:
  // The databases are `path`-run-0, `path`-run-1, and so on, each of about `run_bytes` of rows.
  SortedRuns(storage::RowStore& store, std::string path, std::size_t run_bytes,
             storage::ChosenEncoding encoding)
      : store_(store),
        path_(std::move(path)),
        run_bytes_(run_bytes),
        encoding_(std::move(encoding)) {}

  // Adds rows of the table, and such as have gone, ascending. Their numbers are of the whole
  // variable.
  //   Errors  the store's.
  void add(const storage::TableRecord& table, storage::StoredRows rows,
           std::span<const std::int64_t> gone = {});
  // The same: `rows` one behind the other, as `layout` says, with their numbers in `keys`, which
  // are of the table's part.
  void add(const storage::TableRecord& table, const storage::StoredRows& layout,
           std::span<const std::uint64_t> keys, std::vector<std::byte> rows);
  // Ends the last run. What was saved, a database after the other.
  std::vector<SavedDatabase> finish();

 private:
  struct Row {
    std::int64_t number;
    const std::byte* saved;
  };
  // Rows of one part of a variable.
  struct OfTable {
    storage::TableRecord table;
    storage::StoredRows layout;  // without rows
    std::vector<Row> rows;
    std::vector<std::int64_t> gone;
  };
  OfTable& of(const storage::TableRecord& table, const storage::StoredRows& layout);
  void keep(std::vector<std::byte> rows);
  void end_run();
  void write_rows(OfTable& of, storage::DatabaseWriter& writer, SavedDatabase& saved) const;
  static void write_gone(const OfTable& of, storage::DatabaseWriter& writer, SavedDatabase& saved);

  storage::RowStore& store_;
  const std::string path_;
  const std::size_t run_bytes_;
  const storage::ChosenEncoding encoding_;
  std::vector<OfTable> tables_;               // of the run
  std::vector<std::vector<std::byte>> kept_;  // what `saved` refers to
  std::size_t bytes_ = 0;                     // of these
  std::vector<SavedDatabase> saved_;
};

}  // namespace cairn::ps
