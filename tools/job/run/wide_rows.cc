#include "tools/job/run/wide_rows.h"

#include <algorithm>

#include "nn/layers/id_cross.h"

namespace cairn::tools {
namespace {

const WideLayout::Column* column_of(const WideLayout& layout, const std::string& name) {
  const auto found = std::find_if(layout.columns.begin(), layout.columns.end(),
                                  [&name](const auto& column) { return column.name == name; });
  return found == layout.columns.end() ? nullptr : &*found;
}

std::int64_t rows_of_cross(const WideLayout& layout, const WideLayout::Cross& cross) {
  std::vector<std::int64_t> rows;
  for (const std::string& name : cross.columns)
    if (const auto* column = column_of(layout, name)) rows.push_back(column->rows);
  return nn::IdCross(std::move(rows), cross.buckets).rows();
}

// Each row is where it was.
bool stays(const std::optional<RowNumbers>& rows, std::int64_t rows_now) {
  if (!rows.has_value() || static_cast<std::int64_t>(rows->size()) != rows_now) return false;
  for (std::size_t i = 0; i < rows->size(); ++i)
    if ((*rows)[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

// The first row of each column, and of each cross, in the table.
struct Offsets {
  explicit Offsets(const WideLayout& layout) {
    std::int64_t at = 0;
    for (const auto& column : layout.columns) {
      columns.push_back(at);
      at += column.rows;
    }
    for (const auto& cross : layout.crosses) {
      crosses.push_back(at);
      at += rows_of_cross(layout, cross);
    }
  }
  std::vector<std::int64_t> columns, crosses;
};

// The places of `count` rows that lie at `at` now; nowhere: they are gone.
void append(RowNumbers& numbers, std::int64_t count, std::optional<std::int64_t> at) {
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(at.has_value() ? *at + i : kRowGone);
}

}  // namespace

RowNumbers wide_rows(const WideLayout& saved, const WideLayout& now, const ColumnRows& rows_of) {
  const Offsets offsets(now);
  RowNumbers numbers;
  for (const auto& column : saved.columns) {
    const auto* const own = column_of(now, column.name);
    const auto rows = own == nullptr ? std::nullopt : rows_of(column.name);
    if (!rows.has_value() || static_cast<std::int64_t>(rows->size()) != column.rows) {
      append(numbers, column.rows, std::nullopt);
      continue;
    }
    const std::int64_t first = offsets.columns[static_cast<std::size_t>(own - now.columns.data())];
    for (const std::int64_t row : *rows)
      numbers.push_back(row == kRowGone ? kRowGone : first + row);
  }
  for (const auto& cross : saved.crosses) {
    const bool same =
        std::all_of(cross.columns.begin(), cross.columns.end(), [&](const std::string& name) {
          const auto* const own = column_of(now, name);
          return own != nullptr && stays(rows_of(name), own->rows);
        });
    const auto found = std::find(now.crosses.begin(), now.crosses.end(), cross);
    const auto at = static_cast<std::size_t>(found - now.crosses.begin());
    const bool kept = same && found != now.crosses.end();
    append(numbers, rows_of_cross(saved, cross),
           kept ? std::optional(offsets.crosses[at]) : std::nullopt);
  }
  return numbers;
}

}  // namespace cairn::tools
