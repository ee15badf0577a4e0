// Reading the rows of a part from the databases of a checkpoint, whatever the layout was when they
// were written. Keys sort by variable and row, so a part of any layout is one range of each
// database.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/rows/layout.h"
#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn::storage {

class SupersededRows;

// The records of one variable's rows in one database, in pieces: first its table records, then the
// blocks that hold any row of `range`. Of several databases that make a checkpoint together, later
// ones say which rows of it count: SupersededRows.
//   Errors  those of the reader, and DataLoss: a record is damaged; names its file.
//   Thread  one at a time; calls block.
class RangeRead {
 public:
  // `reader` belongs to the caller and must not be used for anything else until this is done.
  // `superseded`, if given, outlives this: rows that do not count in `database` are left out.
  RangeRead(DatabaseReader& reader, std::string variable, RowRange range,
            const SupersededRows* superseded = nullptr, std::size_t database = 0);

  // All table records of the variable in this database. Empty: the database does not have the
  // variable, and there is nothing else to read.
  std::vector<TableRecord> tables();
  // Rows of the range that have gone, ascending; and what parts that overlap with it have seen of
  // others. Each after tables(), and before the first row.
  std::vector<std::int64_t> gone();
  std::vector<SeenRows> seen();
  // Reads the next block that may hold rows of the range into `rows`, whose memory is used again;
  // false at the end of the range. To be called after tables().
  bool next(StoredRows& rows);
  // Adds blocks to `out` until they hold `bytes` or the range ends; false at its end. To be called
  // after tables().
  bool read(std::vector<StoredRows>& out, std::size_t bytes);
  // Roughly how many bytes the rows of the range take, once tables() has been called.
  std::uint64_t expected_bytes();

 private:
  bool at_rows() const;  // on a block of this variable
  bool at_range();       // on one that begins before the range's end
  void go_to_first();
  std::string first() const;  // the key at which reading begins, or the one before it
  std::uint64_t read_ahead();
  [[noreturn]] void damaged(const DataLossError& error) const;

  template <typename Take>
  void each(RecordKind kind, Take take);

  DatabaseReader& reader_;
  const SupersededRows* superseded_;
  std::size_t database_;
  std::string variable_;
  RowRange range_;
  std::string prefix_;  // of the keys of this variable's blocks
  bool here_ = false;   // some rows of the range may lie in this database
  bool blocks_overlap_ = false;
  double wanted_share_ = 1;  // of the bytes to be read, roughly
  bool sought_ = false;
};

}  // namespace cairn::storage
