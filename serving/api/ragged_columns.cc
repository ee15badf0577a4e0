#include "serving/api/ragged_columns.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace cairn::serving {

RaggedColumns find_ragged(const std::vector<ColumnSpec>& columns) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < columns.size(); ++i) places.emplace(columns[i].name, i);
  RaggedColumns made;
  made.is_splits.assign(columns.size(), false);
  for (const ColumnSpec& column : columns) {
    const auto found = places.find(column.name + "/row_splits");
    made.splits.push_back(found == places.end() ? kNoColumn : found->second);
    if (found != places.end()) made.is_splits[found->second] = true;
  }
  return made;
}

}  // namespace cairn::serving
