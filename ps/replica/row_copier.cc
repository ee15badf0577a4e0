#include "ps/replica/row_copier.h"

#include <algorithm>

namespace cairn::ps {

RowCopier::RowCopier(const Shard& shard) {
  for (const auto& [id, table] : shard.describe().tables) {
    OfTable of{id, table, {}};
    if (!table->hashed()) {
      TouchedRows touched(table->rows());
      table->mark_touched(touched);
      touched.settle();
      touched.for_each_range([&of](RowRange range) { of.ranges.push_back(range); });
      std::ranges::reverse(of.ranges);
    }
    tables_.push_back(std::move(of));
  }
  std::ranges::reverse(tables_);
}

RowCopier::Block RowCopier::block_of(const OfTable& of, RowRange places) {
  return {of.id, of.table->spec().name, of.table->rows_at(places)};
}

std::optional<RowCopier::Block> RowCopier::next(std::size_t bytes) {
  while (!tables_.empty()) {
    OfTable& of = tables_.back();
    // A reader of blocks takes no more rows of one than it could have bytes.
    const auto rows = static_cast<std::int64_t>(std::clamp<std::size_t>(
        bytes / std::max<std::size_t>(1, of.table->saved_row_bytes()), 1, storage::kBlockBytes));
    if (of.table->hashed() && place_ < of.table->held()) {
      const RowRange places{place_, std::min(place_ + rows, of.table->held())};
      place_ = places.end;
      if (Block block = block_of(of, places); block.rows.rows() > 0) return block;
      continue;
    }
    if (!of.ranges.empty()) {
      RowRange& range = of.ranges.back();
      const RowRange taken{range.begin, std::min(range.begin + rows, range.end)};
      range.begin = taken.end;
      if (range.begin == range.end) of.ranges.pop_back();
      return block_of(of, taken);
    }
    tables_.pop_back();
    place_ = 0;
  }
  return std::nullopt;
}

}  // namespace cairn::ps
