// The `label` of a data format's table in a job file: which column, and what of it is learnt.
#pragma once
#include <optional>
#include <string>

#include "data/dataset/schema.h"

namespace cairn::tools {

class TomlTable;

// The target that is learnt, where it is not the label's column itself. The keys above, below and
// unknown of the tables `label`.
struct JobLabel {
  // Learnt is 1 where the number is above the one, or below the other, and 0 elsewhere.
  std::optional<double> above, below;
  // Rows without a label are left out, and not an error. Of csv and text.
  bool skip_unknown = false;

  bool is_threshold() const { return above || below; }
};

// Each reads the whole table, and refuses other keys.
//   Errors  InvalidArgument: file, line and what is wrong.
//
// {positive, negative}, with `named` also column.
void read_label(TomlTable label, CsvLabel& made, bool named);
// The same with above, below and unknown.
void read_cell_label(TomlTable label, CsvLabel& made, JobLabel& truth, bool named);
// `table`'s label: a column's name, or {column, ...} with all of these.
void read_csv_label(TomlTable& table, CsvLabel& made, JobLabel& truth);
// `table`'s label: a column's name, or {column, above, below}.
void read_named_label(TomlTable& table, std::string& column, JobLabel& truth);

}  // namespace cairn::tools
