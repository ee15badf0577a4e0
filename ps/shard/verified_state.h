// VerifiedState: a request for rows with their slots whose table a shard has found, and whose rows
// it has verified. It answers with the rows as they are when it is asked, and is good until the
// shard is next called.
//   Thread  the shard's.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ps/table/table.h"

namespace cairn::ps {

class VerifiedState {
 public:
  VerifiedState(const Table& table, RowRange rows) : table_(&table), rows_(rows) {}

  // Optimizers' updates of the part so far: the `t` of Adam.
  std::int64_t updates() const { return table_->updates(); }
  std::uint64_t written() const { return table_->written(); }  // see Table
  std::size_t bytes() const {
    return static_cast<std::size_t>(rows_.size()) * table_->saved_row_bytes();
  }
  // Row after row, each with its slots behind it. `out` has room for bytes().
  void read(std::byte* out) const { table_->save(rows_, out); }

 private:
  const Table* table_;
  RowRange rows_;  // local
};

}  // namespace cairn::ps
