// Where the rows of a wide part's table go, if its features or their vocabularies are others now:
// they follow one another in that table, and crosses follow them (nn/layers/wide.h).
//   Thread  any; values.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/rows/row_move.h"

namespace cairn::tools {

struct WideLayout {
  struct Column {
    std::string name;
    std::int64_t rows = 0;
  };
  struct Cross {
    std::vector<std::string> columns;
    std::int64_t buckets = 0;
    bool operator==(const Cross&) const = default;
  };
  std::vector<Column> columns;
  std::vector<Cross> crosses;
};

// Gives the new place of each row of a column within the column, or nothing if its rows mean
// something else now.
using ColumnRows = std::function<std::optional<RowNumbers>(const std::string& column)>;

// Rows of a cross stay what they are if none of its columns has changed; otherwise they go.
//   Errors  InvalidArgument: as nn::IdCross.
RowNumbers wide_rows(const WideLayout& saved, const WideLayout& now, const ColumnRows& rows_of);

}  // namespace cairn::tools
