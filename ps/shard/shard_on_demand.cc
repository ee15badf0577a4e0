// Shard's restoring on demand: it opens, and rows come afterwards.
#include <algorithm>

#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// While it has no table, requests are not asked about it, and cost what they did before.
void Shard::follow_restoring() {
  if (can_restore_on_demand()) waits_.set_source(restoring_.any() ? &restoring_ : nullptr);
}

// Stale rows of dense tables are reset at once, since the shard is about to be open.
RestoreReport Shard::end_restore_on_demand(const AppliedSet& applied,
                                           std::shared_ptr<CheckpointRows> rows) {
  CAIRN_CHECK(can_restore_on_demand(), "some rows of this shard are elsewhere");
  RestoreReport report = end_restore(applied);
  for (const auto& [name, table] : named_) {
    if (restore_.chosen.count(table) == 0 || restore_.restored.count(name.first) == 0) continue;
    const auto slots =
        restore_.other_slots.contains(name.first) ? Table::Slots::kAsTheyAre : Table::Slots::kTake;
    restoring_.begin(*table, restore_.number, rows, slots);
  }
  follow_restoring();
  return report;
}

bool Shard::restores_later(std::uint64_t restore, const std::string& variable,
                           std::int64_t part) const {
  const auto at = named_.find({variable, part});
  return at != named_.end() && restoring_.has(*at->second, restore);
}

void Shard::restore_later(const storage::StoredRows& rows, const std::string& variable,
                          std::int64_t part) {
  restoring_.put(*named_.at({variable, part}), rows);
}

void Shard::put_later(Table& table, const storage::StoredRows& rows, Table::Slots slots) {
  const std::int64_t held = table.held();
  const std::size_t bytes = table.memory_bytes();
  ShardCounters::add(counters_.restored_rows, static_cast<std::uint64_t>(table.put(rows, slots)));
  count_growth(table, held, bytes);
}

void Shard::expect_later(std::uint64_t bytes, const std::string& variable, std::int64_t part) {
  Table& table = *named_.at({variable, part});
  const auto rows =
      static_cast<std::int64_t>(bytes / std::max<std::size_t>(1, table.saved_row_bytes()));
  table.expect(std::max(rows, table.held()));
}

void Shard::end_restore_later(const std::string& variable, std::int64_t part) {
  restoring_.end(*named_.at({variable, part}));
  follow_restoring();
  count_tables();
}

void Shard::fail_restore_later(std::uint64_t restore, std::exception_ptr error) {
  restoring_.fail(restore, std::move(error));
}

// Rows that are still to come would bring slots of the rule before it.
void Shard::set_rule(Table& table, const UpdateRule& rule) {
  if (!same_slots(rule, table.rule())) restoring_.slots_changed(table);
  table.set_rule(rule);
}

bool Shard::hurry(const StateRequest& request) {
  const auto found = tables_.find(key(request.variable, request.part));
  if (!open_ || request.session != session_ || found == tables_.end() ||
      !restoring_.has(*found->second) || restoring_.error() != nullptr)
    return false;
  restoring_.hurry(*found->second);
  return true;
}

}  // namespace cairn::ps
