// Lending: which rows of a table are lent to readers that read them late, such as a socket, from
// where they lie. Before lent rows change, their loan goes on with a copy of them.
//   Thread  the table's own, which is also the readers'.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/loan.h"
#include "core/rows/row_memory.h"

namespace cairn::ps {

class Lending {
 public:
  // Rows that lie together as they travel, padded to a multiple of 8 bytes; null: they do not lie
  // so, copy them. As long as the loan lives it reads as the rows do now. It outlives the table if
  // need be.
  std::shared_ptr<Loan> lend(const RowMemory& memory, RowRange rows);
  // Before the rows at these places change, or all rows do.
  void before_write(Arena& arena, std::span<const std::int64_t> places) {
    if (!loans_.empty()) end_loans_of(arena, places);
  }
  void before_write_all(Arena& arena);
  // Call when the rows have moved: the lent memory is not written to any more.
  void forget() { loans_.clear(); }

 private:
  void end_loans_of(Arena& arena, std::span<const std::int64_t> places);
  static void end(Arena& arena, Loan& loan);

  std::vector<std::pair<RowRange, std::weak_ptr<Loan>>> loans_;
};

}  // namespace cairn::ps
