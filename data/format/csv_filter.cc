// Conditions look at cells before they are parsed: a row that is left out costs no decoding, and
// may hold what would not parse.
#include "data/format/csv_filter.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {

bool is_unknown(std::string_view cell, const CsvSchema& schema, const CsvColumn& column) {
  return cell.empty() || cell == schema.unknown ||
         std::ranges::any_of(column.unknown, [&](const auto& each) { return cell == each; });
}

std::vector<ConditionColumn> condition_columns(const CsvSchema& schema) {
  std::vector<ConditionColumn> columns;
  for (const CsvColumn& column : schema.columns)
    columns.push_back(
        {column.name, column.dtype, column.separator != 0, column.skip, column.date_format});
  return columns;
}

// The label comes last: a row that `where` leaves out must not also count as unlabelled.
CsvFilter::CsvFilter(const CsvSchema& schema) : schema_(schema) {
  const std::vector<ConditionColumn> columns = condition_columns(schema);
  for (const std::string& text : schema.where) tests_.push_back({RowCondition(text, columns)});
  if (schema.label.skip_unknown) tests_.push_back({RowCondition::known(schema.label.column)});
  for (Test& test : tests_) {
    const auto found = std::ranges::find(schema.columns, test.condition.column(), &CsvColumn::name);
    test.in_schema = static_cast<std::size_t>(found - schema.columns.begin());
  }
  if (schema.label.skip_unknown) tests_.back().of_label = true;
}

bool CsvFilter::reads(const std::string& column) const {
  return std::ranges::any_of(tests_,
                             [&](const Test& test) { return test.condition.column() == column; });
}

void CsvFilter::place(const std::vector<std::size_t>& wanted) {
  for (Test& test : tests_) {
    const auto found = std::ranges::find(wanted, test.in_schema);
    CAIRN_CHECK(found != wanted.end(), "a column of a condition is not cut");
    test.in_cells = static_cast<std::size_t>(found - wanted.begin());
  }
}

// How many rows more are left out.
std::int64_t CsvFilter::sort_out(const Test& test, const CsvCells& cells) {
  std::int64_t more = 0;
  const CsvColumn& column = schema_.columns[test.in_schema];
  const auto& values = cells.columns[test.in_cells];
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (unwanted_[row]) continue;
    if (!is_unknown(values[row], schema_, column) && test.condition.holds(values[row])) continue;
    unwanted_[row] = true;
    ++more;
  }
  return more;
}

void CsvFilter::apply(CsvCells& cells, const LineEvents& events) {
  if (tests_.empty() || cells.rows.empty()) return;
  unwanted_.assign(cells.rows.size(), false);
  std::int64_t filtered = 0, unlabelled = 0;
  for (const Test& test : tests_) (test.of_label ? unlabelled : filtered) += sort_out(test, cells);
  if (filtered + unlabelled > 0) cells.erase(unwanted_);
  if (filtered > 0 && events.on_filtered_rows) events.on_filtered_rows(filtered);
  if (unlabelled > 0 && events.on_unlabelled_rows) events.on_unlabelled_rows(unlabelled);
}

}  // namespace cairn
