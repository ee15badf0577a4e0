// Shard's restoring on demand: it opens, and rows come afterwards.
#include <algorithm>

#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// While it has no table, requests are not asked about it, and cost what they did before.
void Shard::follow_restoring() {
  if (tiers_ != nullptr || options_.row_source != nullptr) return;
  waits_.set_source(restoring_.any() ? &restoring_ : nullptr);
  if (!restoring_.any()) count_restored_bytes(0, 0);
}

void Shard::count_restored_bytes(std::uint64_t bytes, std::uint64_t of) {
  ShardCounters::set(counters_.restore.bytes, bytes);
  ShardCounters::set(counters_.restore.bytes_in_all, of);
}

std::string Shard::still_restoring() const {
  if (!restoring_.any()) return "";
  constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
  return str(restoring_.names(), " (",
             counters_.restore.bytes.load(std::memory_order_relaxed) / kMegabyte, " of ",
             counters_.restore.bytes_in_all.load(std::memory_order_relaxed) / kMegabyte,
             " MB are there)");
}

// A row that has gone for good would be looked for in the checkpoint again.
std::string Shard::on_demand_obstacle() const {
  if (tiers_ != nullptr) return "this ps has a memory limit";
  if (options_.row_source != nullptr) return "rows of this shard are elsewhere";
  for (const auto& [name, table] : named_)
    if (restore_.chosen.count(table) != 0 && !table->spec().policy.keeps_all())
      return str("'", name.first, "' does not keep every row (RowPolicy)");
  return "";
}

// Stale rows of dense tables are reset when it is known that the checkpoint lacks them: drawing
// initial values for all of them takes longer than to restore them.
RestoreReport Shard::end_restore_on_demand(const AppliedSet& applied,
                                           std::shared_ptr<CheckpointRows> rows) {
  CAIRN_CHECK(on_demand_obstacle().empty(), on_demand_obstacle());
  RestoreReport report = end_restore(applied, StaleRows::kOfThoseToComeStay);
  for (const auto& [name, table] : named_) {
    if (!is_restored(*table)) continue;
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
  const std::int64_t rows_before = rows_of(table);
  const std::size_t bytes = table.memory_bytes();
  ShardCounters::add(counters_.restore.rows, static_cast<std::uint64_t>(table.put(rows, slots)));
  count_growth(table, rows_before, bytes);
}

void Shard::expect_later(std::uint64_t bytes, const std::string& variable, std::int64_t part) {
  Table& table = *named_.at({variable, part});
  const auto rows =
      static_cast<std::int64_t>(bytes / std::max<std::size_t>(1, table.saved_row_bytes()));
  table.expect(std::max(rows, table.held()));
}

void Shard::end_restore_later(const std::string& variable, std::int64_t part) {
  Table& table = *named_.at({variable, part});
  table.end_restore();
  restoring_.end(table);
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
  if (!opened_.now || request.session != session_ || found == tables_.end() ||
      !restoring_.has(*found->second) || restoring_.error() != nullptr)
    return false;
  restoring_.hurry(*found->second);
  return true;
}

}  // namespace cairn::ps
