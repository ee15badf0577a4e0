// RowLookup: single rows of one variable of one database, found by their numbers. For a restore on
// demand, which brings rows that are asked for before the others; who reads ranges uses RangeRead.
//   Thread  one at a time; calls block on the disk.
//   Cost    a row reads the block that it lies in; rows of one block share that. Blocks of the next
//           128 rows are on their way from the disk meanwhile. In databases of earlier releases,
//           which have no list of their records, blocks are read one after another, up to three for
//           a row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn::storage {

class RowLookup {
 public:
  // `reader` belongs to the caller and must not be used for anything else during take().
  //   Needs  a variable whose blocks do not overlap (TableRecord::blocks_overlap).
  RowLookup(DatabaseReader& reader, std::string variable);

  // Those of `rows`, ascending and distinct, that the database holds go to `found`, and are no
  // longer in `rows`: rows of one form together, by their numbers in the whole variable.
  //   Errors  those of the reader, and DataLoss: a block is damaged; names its file.
  void take(std::vector<std::int64_t>& rows, std::vector<StoredRows>& found);

 private:
  std::string key_of(std::int64_t row) const {
    return encode(RecordKey{variable_, RecordKind::kRows, row});
  }
  bool go_to_block_of(std::int64_t row, const std::string& announced);
  void add(std::size_t at, std::vector<StoredRows>& found) const;

  DatabaseReader& reader_;
  std::string variable_;
  std::string prefix_;  // of the keys of this variable's blocks
  std::string key_;     // of the block that was decoded last
  StoredRows block_;
};

}  // namespace cairn::storage
