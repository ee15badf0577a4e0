// RowSummer: goes round over all rows of a primary, a slice at a time, for the sums by which its
// backups compare their rows with them (ps/table/row_sums.h).
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ps/shard/shard.h"
#include "ps/table/row_sums.h"

namespace cairn::ps {

// The shard is open whenever this is asked. Tables that are made meanwhile are among the others.
class RowSummer {
 public:
  explicit RowSummer(const Shard& shard) : shard_(shard) {}

  struct Slice {
    TableId table;
    SummedRows rows;
  };
  // About `bytes` of rows as they are now, and at least one; nothing at the end, after which it
  // begins again.
  std::optional<Slice> next(std::size_t bytes);
  void begin_again();
  // How many slices of so many bytes make one round, roughly; at least 1.
  std::int64_t slices(std::size_t bytes) const;

 private:
  static std::int64_t rows_of(const Table& table, std::size_t bytes);

  const Shard& shard_;
  TableId table_;           // the next slice is of this one, or of a later one,
  std::int64_t place_ = 0;  // and begins here
};

}  // namespace cairn::ps
