// Sums by which two copies of a table compare their rows, a slice of them at a time.
//
// A sum is one of hashes, each of a row's number and of its bytes with its slots. Rows are named by
// their numbers, so that it makes no difference in which order a hashed table holds them.
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/table/table.h"

namespace cairn::ps {

struct SummedRows {
  static constexpr std::int64_t kRowsOfASum = 64;

  std::uint32_t row_bytes = 0;  // with slots
  RuleKind rule = RuleKind::kAssign;
  std::int64_t begin = 0;  // local number of the first row
  std::uint32_t rows = 0;  // they follow each other, but those of a hashed table have
  std::vector<std::int64_t> numbers = {};  // these, ascending
  std::int64_t held = 0;                   // rows of the table in all
  std::vector<std::uint64_t> sums = {};    // of each kRowsOfASum rows
};

// The rows at these places as they are now; none, if no place has one.
SummedRows sum_up(const Table& table, RowRange places);
// Compares the table's rows with those of another copy of it. Where the other one is laid out for
// another rule nothing is compared.
//   Errors  DataLoss: they differ; names the variable and the rows. InvalidArgument: the numbers
//           are none of this table.
void compare(Table& table, const SummedRows& theirs);

}  // namespace cairn::ps
