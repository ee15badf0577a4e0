// Shard's tables that have rows elsewhere: their memory, and what a checkpoint holds of them.
#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

void Shard::store_went_on() {
  if (tiers_ == nullptr) return;
  waits_.give_turns();
  count_tables();  // rows have come and gone
}

void Shard::settle() {
  if (tiers_ != nullptr) waits_.settle();
}

bool Shard::is_crowded() const { return tiers_ != nullptr && tiers_->crowded(); }

bool Shard::restores_at_once(const std::string& variable, std::int64_t part) const {
  const auto at = named_.find({variable, part});
  return at == named_.end() || at->second->tier() == nullptr;
}

bool Shard::bring_restored(const storage::StoredRows& rows, const std::string& variable,
                           std::int64_t part, TieredRows::Brought done) {
  const auto at = named_.find({variable, part});
  if (tiers_ == nullptr || at == named_.end() || restore_.chosen.count(at->second) == 0 ||
      at->second->tier() == nullptr || at->second->tier()->all_here())
    return false;
  return tiers_->bring(*at->second, at->second->rows_of(rows), std::move(done));
}

void Shard::count_tiers() {
  if (tiers_ == nullptr) return;
  std::uint64_t elsewhere = 0, disk_bytes = 0;
  for (const auto& [key, table] : tables_) {
    if (table->tier() == nullptr) continue;
    elsewhere += table->tier()->rows_elsewhere();
    disk_bytes += table->tier()->store_use().disk_bytes;
  }
  ShardCounters::Tier& tier = counters_.tier;
  ShardCounters::set(tier.rows_elsewhere, elsewhere);
  ShardCounters::set(tier.disk_bytes, disk_bytes);
  ShardCounters::set(tier.fetched_rows, tiers_->counters().fetched);
  ShardCounters::set(tier.evicted_rows, tiers_->counters().evicted);
  ShardCounters::set(tier.written_rows, tiers_->counters().written);
}

void Shard::verify_being_saved(std::uint64_t attempt) const {
  if (!cuts_.mark.has_value() || cuts_.mark->attempt != attempt || !cuts_.mark->saving)
    // The writer waits for the disk between two records, and in that time the coordinator may have
    // given the cut up.
    throw CancelledError(str("the mark of cut ", attempt, " was dropped while it was saved"));
}

// First what was in memory, as it has to be copied aside until it is taken.
std::optional<UnorderedRows> Shard::next_unordered(std::uint64_t attempt) {
  verify_being_saved(attempt);
  Mark& mark = *cuts_.mark;
  for (; mark.unordered < mark.tables.size(); ++mark.unordered) {
    Table& table = *mark.tables[mark.unordered];
    if (table.in_order()) continue;
    std::optional<storage::StoredRows> rows = table.take_frozen();
    note_taken(table, rows.has_value() ? rows->data.size() : 0);
    if (rows.has_value()) return UnorderedRows{table.frozen_record(), std::move(*rows), {}};
    std::vector<std::int64_t> gone = table.take_gone();
    for (std::int64_t& row : gone) row += table.range().begin;
    if (!gone.empty())
      return UnorderedRows{table.frozen_record(), table.saved_layout(), std::move(gone)};
    mark.passed += static_cast<std::uint64_t>(table.frozen_blocks());
  }
  return std::nullopt;
}

bool Shard::next_elsewhere(std::uint64_t attempt, std::size_t most, ElsewhereDone done) {
  verify_being_saved(attempt);
  Mark& mark = *cuts_.mark;
  for (; mark.elsewhere < mark.tables.size(); ++mark.elsewhere) {
    Table& table = *mark.tables[mark.elsewhere];
    if (table.frozen_elsewhere() == nullptr) continue;
    if (mark.taken_elsewhere == table.frozen_elsewhere()->rows()) {
      mark.taken_elsewhere = 0;
      continue;
    }
    most = std::min<std::uint64_t>(most, table.frozen_elsewhere()->rows() - mark.taken_elsewhere);
    mark.taken_elsewhere += most;
    table.frozen_elsewhere()->next(most,
                                   [record = table.frozen_record(), layout = table.saved_layout(),
                                    done = std::move(done)](storage::ReadRows read) {
                                     done(RowsElsewhere{record, layout, std::move(read)});
                                   });
    return true;
  }
  return false;
}

}  // namespace cairn::ps
