#include "ps/replica/row_summer.h"

#include <algorithm>

namespace cairn::ps {

std::int64_t RowSummer::rows_of(const Table& table, std::size_t bytes) {
  return static_cast<std::int64_t>(
      std::max<std::size_t>(1, bytes / std::max<std::size_t>(1, table.saved_row_bytes())));
}

std::optional<RowSummer::Slice> RowSummer::next(std::size_t bytes) {
  for (const auto& [id, table] : shard_.describe().tables) {
    if (id < table_) continue;
    if (table_ < id) place_ = 0;
    table_ = id;
    while (place_ < table->held()) {
      const RowRange places{place_, std::min(place_ + rows_of(*table, bytes), table->held())};
      place_ = places.end;
      Slice slice{id, sum_up(*table, places)};
      if (slice.rows.rows > 0) return slice;
    }
  }
  begin_again();
  return std::nullopt;
}

void RowSummer::begin_again() {
  table_ = {};
  place_ = 0;
}

std::int64_t RowSummer::slices(std::size_t bytes) const {
  std::int64_t slices = 0;
  for (const auto& [id, table] : shard_.describe().tables)
    slices += table->held() / rows_of(*table, bytes) + 1;
  return std::max<std::int64_t>(1, slices);
}

}  // namespace cairn::ps
