// The records of a checkpoint's variable as those of the program's variable that takes its rows:
// the one place where a RowMove is applied to them.
//   Thread  any.
#pragma once
#include <string>

#include "core/rows/layout.h"
#include "core/rows/row_move.h"
#include "storage/row_block.h"

namespace cairn::storage {

// The rows of the checkpoint's variable that may become rows `wanted` of the program's.
RowRange rows_to_read(RowRange wanted, const RowMove& move);

// The record of the program's variable `name`. Without slots it counts no updates.
void move_record(TableRecord& record, const std::string& name, const RowMove& move);
// Rows by their new numbers, ascending, without those that went and, if the move says so, without
// slots. There may be none left.
//   Errors  DataLoss: the checkpoint's variable has no such row. InvalidArgument: two rows of the
//           block have one new number.
void move_rows(StoredRows& rows, const RowMove& move);

}  // namespace cairn::storage
