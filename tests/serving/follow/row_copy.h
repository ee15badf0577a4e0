// A copy of rows that follows a stream, as a program would keep one.
#pragma once
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "serving/follow/row_stream.h"

namespace cairn::serving {

class RowCopy {
 public:
  using Row = std::vector<float>;
  using Rows = std::map<std::int64_t, Row>;  // that differ from their initial values, or have

  void apply(const RowChanges& changes) {
    Rows& mine = rows_[changes.variable->name];
    std::set<std::int64_t>& unsure = unsure_[changes.variable->name];
    if (changes.begins)
      for (auto at = mine.lower_bound(changes.part.begin);
           at != mine.end() && at->first < changes.part.end; ++at)
        unsure.insert(at->first);
    const auto dim = static_cast<std::size_t>(changes.variable->dim());
    for (std::size_t i = 0; i < changes.rows.size(); ++i) {
      Row row(dim);
      std::memcpy(row.data(), changes.values.data() + i * dim * sizeof(float), dim * sizeof(float));
      mine[changes.rows[i]] = row;
      unsure.erase(changes.rows[i]);
    }
    for (const std::int64_t row : changes.gone) {
      mine.erase(row);
      unsure.erase(row);
    }
    if (!changes.complete) return;
    for (auto at = unsure.lower_bound(changes.part.begin);
         at != unsure.end() && *at < changes.part.end; at = unsure.erase(at))
      mine.erase(*at);
  }
  const Rows& of(const std::string& variable) { return rows_[variable]; }

 private:
  std::map<std::string, Rows> rows_;
  std::map<std::string, std::set<std::int64_t>> unsure_;  // of before a beginning
};

}  // namespace cairn::serving
