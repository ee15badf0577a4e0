#include "coordinator/dispatch/needed_databases.h"

#include <algorithm>

#include "core/base/error.h"
#include "storage/database_place.h"
#include "storage/moved_rows.h"

namespace cairn {
namespace {

bool overlap(RowRange a, RowRange b) { return std::max(a.begin, b.begin) < std::min(a.end, b.end); }

template <typename Holds>
std::vector<storage::DatabaseInfo> chosen(const CheckpointView& source, Holds holds) {
  std::vector<storage::DatabaseInfo> needed;
  for (const storage::DatabaseInfo& database : source.databases)
    if (!storage::is_local(database.name) ||
        std::any_of(database.parts.begin(), database.parts.end(), holds))
      needed.push_back(database);
  return needed;
}

}  // namespace

std::vector<storage::DatabaseInfo> needed_databases(const CheckpointView& source,
                                                    const Layout& layout, ShardId shard,
                                                    const std::vector<VariableId>& wanted) {
  std::vector<storage::DatabasePart> rows;
  for (const VariableId id : wanted) {
    const VariableLayout& variable = layout.variables[id];
    const auto move = source.move_of(*variable.spec);
    CAIRN_CHECK(move.has_value(), "rows that the checkpoint does not have");
    for (const Part& part : variable.parts)
      if (part.shard == shard)
        rows.push_back({move->from, storage::rows_to_read(part.rows, *move)});
  }
  return chosen(source, [&](const storage::DatabasePart& part) {
    return std::any_of(rows.begin(), rows.end(), [&](const storage::DatabasePart& one) {
      return one.variable == part.variable && overlap(one.rows, part.rows);
    });
  });
}

std::vector<storage::DatabaseInfo> needed_databases(const CheckpointView& source,
                                                    const std::string& saved) {
  return chosen(source, [&](const storage::DatabasePart& part) { return part.variable == saved; });
}

std::vector<std::string> names_of(const std::vector<storage::DatabaseInfo>& databases) {
  std::vector<std::string> names;
  for (const storage::DatabaseInfo& database : databases) names.push_back(database.name);
  return names;
}

}  // namespace cairn
