// IdRange: which whole numbers of a column are ids.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace cairn {

struct IdRange {
  // Ids lie in [0, rows). One bound for all values of an example, or of a column that has a fixed
  // number of them one for each; empty: any number will do.
  std::vector<std::int64_t> rows = {};
  // A further number that may stand for "no id" (FeatureColumn::padding).
  std::optional<std::int64_t> padding = std::nullopt;

  bool any() const { return rows.empty(); }
  // `place` of the value among those of its example, or of all examples' one after another.
  std::int64_t bound(std::size_t place) const {
    return rows[rows.size() == 1 ? 0 : place % rows.size()];
  }
  bool holds(std::int64_t value, std::size_t place = 0) const {
    return (value >= 0 && value < bound(place)) || value == padding;
  }
  // The text behind "is not " in a complaint about a value outside of the range.
  std::string text(std::size_t place = 0) const {
    return str("an id in [0, ", bound(place), ")",
               padding ? str(", nor the padding ", *padding) : "");
  }
  bool operator==(const IdRange&) const = default;
};

// `count`: values of an example; 0: any number. `whole`: the column's dtype has whole numbers.
//   Errors  InvalidArgument: bounds that such a column cannot have; `what` names it.
inline void check_ids(const IdRange& ids, bool whole, std::int64_t count, const std::string& what) {
  if (ids.any()) return;
  for (const std::int64_t rows : ids.rows)
    if (rows < 1)
      throw InvalidArgumentError(
          str(what, ": ids are bounded by ", rows, ", at least 1 is wanted"));
  if (!whole) throw InvalidArgumentError(str(what, ": ids are int32, int64 or uint8"));
  if (ids.rows.size() > 1 && static_cast<std::int64_t>(ids.rows.size()) != count)
    throw InvalidArgumentError(str(what, ": ", ids.rows.size(), " bounds of ids for ", count,
                                   count == 1 ? " value" : " values"));
}

}  // namespace cairn
