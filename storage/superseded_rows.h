// SupersededRows: what the later databases of a checkpoint say of the rows of a variable that
// earlier ones hold.
//
//   A checkpoint that is a delta has the databases of its base, and after them its own. Of two that
//   hold a row the later one's counts, which whoever reads them in order sees to. But a row may
//   have gone since; and a delta may hold all that a part has, which says of every other row of
//   that part that it has gone.
//   Memory  16 bytes a row that has gone, of the range that is read.
//   Thread  one at a time; then any may ask.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/layout.h"
#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn::storage {

class RangeRead;

class SupersededRows {
 public:
  // Nothing is superseded.
  SupersededRows() = default;
  // Looks into the databases of a checkpoint in the manifest's order.
  //   Errors  DataLoss: a record is damaged; names its file.
  SupersededRows(const std::vector<DatabaseReader*>& databases, const std::string& variable,
                 RowRange range);
  // The same, one database after the other.
  void look_into(DatabaseReader& reader, const std::string& variable, RowRange range);

  // Whether any row of the range may count in the database of that number.
  bool any_counts(std::size_t database, RowRange range) const;
  // Whether a row that the database of that number holds is the one that counts.
  bool counts(std::size_t database, std::int64_t row) const;
  // Bytes of memory.
  std::size_t bytes() const { return gone_.capacity() * sizeof(gone_[0]); }
  // Takes those that do not count there out of a block, of which none may be left.
  void take_out(std::size_t database, StoredRows& rows) const;

  // The last that was said of what each part had seen, also parts that only overlap with the range.
  const std::vector<SeenRows>& seen() const { return seen_; }

 private:
  struct Whole {
    RowRange rows;
    std::size_t database;  // that has all of them: in earlier ones they do not count
  };

  std::size_t databases_ = 0;
  std::vector<Whole> whole_;
  std::vector<SeenRows> seen_;
  std::vector<std::pair<std::int64_t, std::size_t>> gone_;  // by row; the last database to say so
};

}  // namespace cairn::storage
