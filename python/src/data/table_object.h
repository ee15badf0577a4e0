// The C++ class behind cairn.Table.
#pragma once
#include <memory>

#include "tables.h"

namespace cairn::python {

// A table that is passed on: its stream, its type and its batch share it.
struct Columned {
  Columns columns;
  std::int64_t rows = 0;
};
using SharedColumns = std::shared_ptr<const Columned>;

// The columns with the number of their rows.
//   Errors  InvalidArgument: single values, or columns of different lengths.
SharedColumns side_by_side(Columns columns);

struct Table {
  SharedColumns shared;
};

}  // namespace cairn::python
