#include "storage/moved_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "storage/row_encoding.h"

namespace cairn::storage {
namespace {

void renumber(StoredRows& rows, const RowMove& move) {
  const RowNumbers& numbers = *move.numbers;
  std::vector<std::pair<std::int64_t, std::size_t>> kept;  // the new number, the place
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    const auto row = static_cast<std::uint64_t>(rows.first_row) + rows.offsets[i];
    if (row >= numbers.size())
      throw DataLossError(str("the checkpoint has row ", row, " of '", move.from, "', which has ",
                              numbers.size(), " rows"));
    if (numbers[row] != kRowGone) kept.emplace_back(numbers[row], i);
  }
  std::sort(kept.begin(), kept.end());
  for (std::size_t i = 1; i < kept.size(); ++i)
    if (kept[i].first == kept[i - 1].first)
      throw InvalidArgumentError(
          str("two rows of '", move.from, "' are to become row ", kept[i].first));
  const std::size_t bytes = rows.row_bytes();
  std::vector<std::byte> data(kept.size() * bytes);
  std::vector<std::uint64_t> offsets;
  for (const auto& [row, place] : kept) {
    std::memcpy(data.data() + offsets.size() * bytes, rows.data.data() + place * bytes, bytes);
    offsets.push_back(static_cast<std::uint64_t>(row - kept.front().first));
  }
  rows.first_row = kept.empty() ? 0 : kept.front().first;
  rows.offsets = std::move(offsets);
  rows.data = std::move(data);
}

}  // namespace

RowRange rows_to_read(RowRange wanted, const RowMove& move) {
  return move.numbers == nullptr ? wanted
                                 : RowRange{0, static_cast<std::int64_t>(move.numbers->size())};
}

void move_record(TableRecord& record, const std::string& name, const RowMove& move) {
  record.variable = name;
  if (record.shape.rank() > 0) record.shape = record.shape.with_dim(0, move.rows);
  if (move.numbers != nullptr) record.rows = {0, move.rows};
  if (move.slots) return;
  record.rule = {};
  record.slots.clear();
  record.updates = 0;
}

void move_rows(StoredRows& rows, const RowMove& move) {
  if (!move.slots) drop_slots(rows);
  if (move.numbers != nullptr) renumber(rows, move);
}

}  // namespace cairn::storage
