#include "storage/superseded_rows.h"

#include <algorithm>
#include <cstring>

#include "storage/range_read.h"

namespace cairn::storage {

SupersededRows::SupersededRows(const std::vector<DatabaseReader*>& databases,
                               const std::string& variable, RowRange range) {
  for (DatabaseReader* const reader : databases) look_into(*reader, variable, range);
}

void SupersededRows::look_into(DatabaseReader& reader, const std::string& variable,
                               RowRange range) {
  RangeRead read(reader, variable, range);
  for (const TableRecord& table : read.tables())
    if (table.whole) whole_.push_back({table.rows, databases_});
  for (SeenRows& seen : read.seen()) {
    std::erase_if(seen_, [&](const SeenRows& before) { return before.rows == seen.rows; });
    seen_.push_back(std::move(seen));
  }
  const std::vector<std::int64_t> gone = read.gone();
  const auto middle = static_cast<std::ptrdiff_t>(gone_.size());
  for (const std::int64_t row : gone) gone_.emplace_back(row, databases_);
  std::inplace_merge(gone_.begin(), gone_.begin() + middle, gone_.end());
  // If a row went twice, the last time is what counts.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < gone_.size(); ++i) {
    if (i + 1 < gone_.size() && gone_[i + 1].first == gone_[i].first) continue;
    gone_[kept++] = gone_[i];
  }
  gone_.resize(kept);
  ++databases_;
}

bool SupersededRows::any_counts(std::size_t database, RowRange range) const {
  return std::ranges::none_of(whole_, [&](const Whole& whole) {
    return whole.database > database && whole.rows.begin <= range.begin &&
           whole.rows.end >= range.end;
  });
}

bool SupersededRows::counts(std::size_t database, std::int64_t row) const {
  for (const Whole& whole : whole_)
    if (whole.database > database && row >= whole.rows.begin && row < whole.rows.end) return false;
  const auto at = std::lower_bound(gone_.begin(), gone_.end(), std::pair(row, std::size_t{0}));
  return at == gone_.end() || at->first != row || at->second <= database;
}

void SupersededRows::take_out(std::size_t database, StoredRows& rows) const {
  if ((whole_.empty() && gone_.empty()) || rows.offsets.empty()) return;
  const std::size_t row_bytes = rows.row_bytes();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    const std::int64_t row = rows.first_row + static_cast<std::int64_t>(rows.offsets[i]);
    if (!counts(database, row)) continue;
    if (kept != i) {
      rows.offsets[kept] = rows.offsets[i];
      std::memmove(rows.data.data() + kept * row_bytes, rows.data.data() + i * row_bytes,
                   row_bytes);
    }
    ++kept;
  }
  rows.offsets.resize(kept);
  rows.data.resize(kept * row_bytes);
  if (kept == 0 || rows.offsets.front() == 0) return;
  // Offsets begin at 0.
  const std::uint64_t first = rows.offsets.front();
  rows.first_row += static_cast<std::int64_t>(first);
  for (std::uint64_t& offset : rows.offsets) offset -= first;
}

}  // namespace cairn::storage
