// Reading the rows of a part from the databases of a checkpoint, whatever the layout was when they
// were written. Keys sort by variable and row, so a part of any layout is one range of each
// database.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn::storage {

// A database name from a manifest or a request must stay inside the checkpoint's folder: no "..",
// no slash.
//   Errors  InvalidArgument: it does not.
void verify_database_name(const std::string& name);

// The records of one variable's rows in one database, in pieces: first its table records, then the
// blocks that hold any row of `range`.
//   Errors  those of the reader, and DataLoss: a record is damaged.
//   Thread  one at a time; calls block.
class RangeRead {
 public:
  // `reader` belongs to the caller and must not be used for anything else until this is done.
  RangeRead(DatabaseReader& reader, std::string variable, RowRange range);

  // All table records of the variable in this database. Empty: the database does not have the
  // variable, and there is nothing else to read.
  std::vector<TableRecord> tables();
  // Adds blocks to `out` until they hold `bytes` or the range ends; false at its end. To be called
  // after tables().
  bool read(std::vector<StoredRows>& out, std::size_t bytes);

 private:
  bool at_rows() const;  // on a block of this variable

  DatabaseReader& reader_;
  std::string variable_;
  RowRange range_;
  std::string prefix_;  // of the keys of this variable's blocks
  bool here_ = false;   // some rows of the range may lie in this database
  bool hashed_ = false;
  bool sought_ = false;
};

}  // namespace cairn::storage
