// A source that holds rows back: for tests of requests that wait for them.
#pragma once
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/shard/row_source.h"

namespace cairn::ps {

class HeldRows final : public RowSource {
 public:
  struct Fetching {
    std::string variable;
    std::vector<std::int64_t> rows;
    Fetched fetched;
  };

  // Row `row` of the variable is here only once it was released, and then has `value`s.
  void hold(const std::string& variable, std::int64_t row, float value) {
    held_[{variable, row}] = value;
  }
  // Fetches that were asked for and not released yet.
  std::vector<Fetching> fetching;

  // The first of these comes, in a block that says its rows' values.
  void release() {
    const Fetching first = take_first();
    std::vector<storage::StoredRows> rows;
    for (const std::int64_t row : first.rows) {
      rows.push_back(stored(row, held_.at({first.variable, row})));
      held_.erase({first.variable, row});
    }
    first.fetched(rows, nullptr);
  }
  void release_all() {
    while (!fetching.empty()) release();
  }
  void fail(std::exception_ptr error) { take_first().fetched({}, std::move(error)); }
  // The tables for which reset() was called.
  std::vector<std::string> resets;

  void find_elsewhere(const WantedRows& wanted, Access /*access*/,
                      std::vector<std::int64_t>& elsewhere) override {
    const std::string& name = wanted.table->spec().name;
    if (wanted.all) {
      for (auto at = held_.lower_bound({name, 0}); at != held_.end() && at->first.first == name;
           ++at)
        elsewhere.push_back(at->first.second);
      return;
    }
    for (const std::int64_t row : wanted.rows)
      if (held_.count({name, row}) != 0) elsewhere.push_back(row);
  }
  void fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) override {
    dim_ = table.spec().dim();
    fetching.push_back({table.spec().name, rows, std::move(fetched)});
  }
  void reset(Table& table) override {
    resets.push_back(table.spec().name);
    std::erase_if(held_, [&](const auto& entry) { return entry.first.first == table.spec().name; });
  }

 private:
  Fetching take_first() {
    Fetching first = std::move(fetching.front());
    fetching.erase(fetching.begin());
    return first;
  }
  storage::StoredRows stored(std::int64_t row, float value) const {
    storage::StoredRows rows{.dim = dim_, .first_row = row, .offsets = {0}};
    const std::vector<float> values(static_cast<std::size_t>(dim_), value);
    rows.data.resize(values.size() * sizeof(float));
    std::memcpy(rows.data.data(), values.data(), rows.data.size());
    return rows;
  }

  std::map<std::pair<std::string, std::int64_t>, float> held_;
  std::int64_t dim_ = 1;
};

}  // namespace cairn::ps
