// CsvFilter: which rows of a CSV file are read, by CsvSchema::where and CsvLabel::skip_unknown.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/lines_read.h"
#include "data/dataset/schema.h"
#include "data/feature/row_condition.h"
#include "data/file/csv_reader.h"

namespace cairn {

// Whether the value of such a cell is unknown: it is empty, or one of the texts that say so.
bool is_unknown(std::string_view cell, const CsvSchema& schema, const CsvColumn& column);

// The columns that conditions may name, and what they are.
std::vector<ConditionColumn> condition_columns(const CsvSchema& schema);

// Keeps a reference to the schema, which must outlive it.
//   Thread  one at a time.
//   Cost    of a condition on a number, a parse of one cell per row.
class CsvFilter {
 public:
  //   Errors  InvalidArgument: a condition that is none, or of a column that is not there.
  explicit CsvFilter(const CsvSchema& schema);

  bool keeps_all() const { return tests_.empty(); }
  bool reads(const std::string& column) const;
  // Sets where cells are: `wanted` are the places in the schema of CsvCells' columns.
  void place(const std::vector<std::size_t>& wanted);
  // Removes the rows that are not to be read, and reports their numbers to `events`.
  void apply(CsvCells& cells, const LineEvents& events);

 private:
  struct Test {
    RowCondition condition;
    std::size_t in_schema = 0, in_cells = 0;
    bool of_label = false;  // that it is known
  };
  std::int64_t sort_out(const Test& test, const CsvCells& cells);

  const CsvSchema& schema_;
  std::vector<Test> tests_;
  std::vector<bool> unwanted_;  // by row
};

}  // namespace cairn
