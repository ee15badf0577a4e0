#include "ps/table/row_sums.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn::ps {
namespace {

std::vector<std::uint64_t> sums_of(const storage::StoredRows& rows, std::int64_t table_begin) {
  constexpr auto kEach = static_cast<std::size_t>(SummedRows::kRowsOfASum);
  std::vector<std::uint64_t> sums((rows.offsets.size() + kEach - 1) / kEach);
  const std::size_t bytes = rows.row_bytes();
  const auto* const data = reinterpret_cast<const char*>(rows.data.data());
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    const std::uint64_t row =
        static_cast<std::uint64_t>(rows.first_row - table_begin) + rows.offsets[i];
    const std::string_view values(data + i * bytes, bytes);
    sums[i / kEach] += mix_bits(mix_bits(row + 1) ^ crc32c(values));
  }
  return sums;
}

void verify(const Table& table, const SummedRows& theirs) {
  const std::size_t rows = theirs.rows;
  constexpr auto kEach = static_cast<std::size_t>(SummedRows::kRowsOfASum);
  bool fits = theirs.sums.size() == (rows + kEach - 1) / kEach && rows > 0 && theirs.begin >= 0;
  if (table.hashed())
    fits =
        fits && theirs.numbers.size() == rows && theirs.numbers.front() >= 0 &&
        theirs.numbers.back() < table.rows() &&
        std::ranges::adjacent_find(theirs.numbers, std::greater_equal<>()) == theirs.numbers.end();
  else
    fits = fits && theirs.numbers.empty() && theirs.begin <= table.rows() &&
           static_cast<std::int64_t>(rows) <= table.rows() - theirs.begin;
  if (!fits)
    throw InvalidArgumentError(str("variable '", table.spec().name, "': ", theirs.sums.size(),
                                   " sums of ", rows, " rows that this table does not have"));
}

storage::StoredRows same_rows(Table& table, const SummedRows& theirs) {
  if (!table.hashed())
    return table.rows_at({theirs.begin, theirs.begin + static_cast<std::int64_t>(theirs.rows)});
  std::vector<std::int64_t> places;
  table.add_places(theirs.numbers, places);
  const auto absent = std::ranges::find(places, -1);
  if (absent != places.end())
    throw DataLossError(
        str("variable '", table.spec().name, "': row ",
            table.range().begin + theirs.numbers[static_cast<std::size_t>(absent - places.begin())],
            " is not in this copy"));
  return table.rows_of_places(std::move(places));
}

}  // namespace

SummedRows sum_up(const Table& table, RowRange places) {
  const storage::StoredRows rows = table.rows_at(places);
  SummedRows summed{static_cast<std::uint32_t>(table.saved_row_bytes()), table.rule().kind};
  if (rows.rows() == 0) return summed;
  summed.begin = rows.first_row - table.range().begin;
  summed.rows = static_cast<std::uint32_t>(rows.rows());
  summed.held = table.used();
  summed.sums = sums_of(rows, table.range().begin);
  if (table.hashed())
    for (const std::uint64_t offset : rows.offsets)
      summed.numbers.push_back(summed.begin + static_cast<std::int64_t>(offset));
  return summed;
}

void compare(Table& table, const SummedRows& theirs) {
  if (theirs.row_bytes != table.saved_row_bytes() || theirs.rule != table.rule().kind) return;
  verify(table, theirs);
  const storage::StoredRows rows = same_rows(table, theirs);
  const std::vector<std::uint64_t> sums = sums_of(rows, table.range().begin);
  const auto [ours, other] = std::ranges::mismatch(sums, theirs.sums);
  if (ours != sums.end()) {
    const auto first = static_cast<std::size_t>((ours - sums.begin()) * SummedRows::kRowsOfASum);
    const std::size_t last =
        std::min<std::size_t>(first + SummedRows::kRowsOfASum, rows.offsets.size()) - 1;
    throw DataLossError(
        str("variable '", table.spec().name, "': this copy has other values in rows ",
            static_cast<std::uint64_t>(rows.first_row) + rows.offsets[first], " to ",
            static_cast<std::uint64_t>(rows.first_row) + rows.offsets[last]));
  }
  if (theirs.held != table.used())
    throw DataLossError(str("variable '", table.spec().name, "': this copy has ", table.used(),
                            " rows, and not ", theirs.held));
}

}  // namespace cairn::ps
