// Shard's cut and its restoring.
#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "ps/shard/shard.h"

namespace cairn::ps {
namespace {

// So often in the course of a save, at most, requests that wait for room are looked at again, and
// after so many blocks (16 MB) at least: each look is at all of their rows.
constexpr std::uint64_t kLooksASave = 64, kBlocksALook = 256;

}  // namespace

MarkResult Shard::mark(std::uint64_t attempt, const MarkOptions& options) {
  // The same cut again: the first answer is repeated, since another one would be of a later moment
  // than the other shards' marks.
  if (cuts_.mark.has_value() && cuts_.mark->attempt == attempt) return cuts_.mark->result;
  if (cuts_.mark.has_value() && cuts_.mark->saving)
    throw FailedPreconditionError(str("cut ", cuts_.mark->attempt,
                                      " is being saved by this shard: mark ", attempt,
                                      " when it is done"));
  if (restore_.under_way || session_ == 0)
    throw FailedPreconditionError(
        "this shard has no state to mark: it is being restored, or was never configured");
  if (restoring_.any())
    throw UnavailableError(str("rows of ", still_restoring(),
                               " are still being restored by this shard: mark ", attempt,
                               " when they are there"));
  clear_mark();
  using Rows = Snapshot::Rows;
  Rows rows = Rows::kAll;
  if (options.base != 0 && options.base == cuts_.tracked_since) rows = Rows::kChanged;
  if (options.base != 0 && options.base == cuts_.tracked_before) rows = Rows::kChangedBefore;
  if (options.passing) rows = Rows::kAll;
  const bool delta = rows != Rows::kAll;
  const Snapshot::Tracking tracking = options.passing ? Snapshot::Tracking::kGoesOn
                                      : options.track ? Snapshot::Tracking::kAnew
                                                      : Snapshot::Tracking::kNone;
  if (!options.passing) cuts_.tracked_since = options.track ? attempt : 0;
  cuts_.tracked_before = delta ? options.base : 0;
  cuts_.mark = Mark{.attempt = attempt, .result = {version(), applied_.snapshot(), delta}};
  for (const auto& [name, table] : named_) cuts_.mark->tables.push_back(table);
  std::sort(cuts_.mark->tables.begin(), cuts_.mark->tables.end(),
            [](const Table* a, const Table* b) {
              // The order is that of storage's keys, which puts shorter names first.
              const std::string &x = a->spec().name, &y = b->spec().name;
              return std::tuple(x.size(), std::string_view(x), a->range().begin) <
                     std::tuple(y.size(), std::string_view(y), b->range().begin);
            });
  // No push comes between the first table and the last: the shard's thread is here, and the
  // coordinator holds pushes on all lanes besides.
  for (Table* table : cuts_.mark->tables) {
    table->freeze(rows, tracking);
    cuts_.mark->blocks += static_cast<std::uint64_t>(table->frozen_blocks());
  }
  const SaveMemory& memory = options_.save_memory;
  const auto bytes = static_cast<double>(counters_.bytes.load(std::memory_order_relaxed));
  cuts_.copies.set_limit(
      memory.bytes > 0
          ? memory.bytes
          : std::max(SaveMemory::kBytesMin, static_cast<std::size_t>(memory.share * bytes)));
  ShardCounters::add(counters_.save.marks, 1);
  ShardCounters::set(counters_.save.blocks, cuts_.mark->blocks);
  ShardCounters::set(counters_.save.copied_bytes_max, cuts_.copies.limit());
  // Requests that waited for an earlier mark, which has given way. Here they come after the cut.
  waits_.give_turns();
  return cuts_.mark->result;
}

void Shard::drop_mark(std::uint64_t attempt) {
  if (!cuts_.mark.has_value() || cuts_.mark->attempt != attempt) return;
  clear_mark();
  waits_.give_turns();
}

void Shard::clear_mark() {
  if (!cuts_.mark.has_value()) return;
  for (Table* table : cuts_.mark->tables) table->thaw();
  cuts_.mark.reset();
  for (ShardCounters::Number* number :
       {&counters_.save.blocks, &counters_.save.taken_blocks, &counters_.save.bytes,
        &counters_.save.copied_bytes, &counters_.save.copied_bytes_max})
    ShardCounters::set(*number, 0);
}

// Blocks that were taken have left room for copies of others.
void Shard::note_taken(const Table& table, std::size_t bytes) {
  ++cuts_.mark->taken;
  ShardCounters::set(counters_.save.taken_blocks,
                     cuts_.mark->passed + static_cast<std::uint64_t>(table.frozen_taken()));
  ShardCounters::add(counters_.save.bytes, bytes);
  count_copies();
  const std::uint64_t look =
      std::clamp<std::uint64_t>(cuts_.mark->blocks / kLooksASave, 1, kBlocksALook);
  if (!waits_.idle() && cuts_.mark->taken % look == 0) waits_.give_turns();
}

std::string Shard::whole_in_delta(std::uint64_t attempt) const {
  std::string names;
  if (!cuts_.mark.has_value() || cuts_.mark->attempt != attempt || !cuts_.mark->result.delta)
    return names;
  const std::string* last = nullptr;
  for (const Table* table : cuts_.mark->tables) {
    const std::string& name = table->spec().name;
    if (!table->frozen_whole() || (last != nullptr && *last == name)) continue;
    names += (last == nullptr ? "" : ", ") + name;
    last = &name;
  }
  return names;
}

bool Shard::next_prepared(std::uint64_t attempt) const {
  return !cuts_.mark.has_value() || cuts_.mark->attempt != attempt ||
         cuts_.mark->table == cuts_.mark->tables.size() ||
         cuts_.mark->tables[cuts_.mark->table]->frozen_prepared();
}

void Shard::prepare_next(std::uint64_t attempt) {
  if (!next_prepared(attempt)) cuts_.mark->tables[cuts_.mark->table]->prepare_frozen();
}

std::size_t Shard::wants_copy_chunks(std::uint64_t attempt) const {
  return cuts_.mark.has_value() && cuts_.mark->attempt == attempt ? cuts_.copies.wants_chunks() : 0;
}

// The pool gives its chunks up when nothing is taken from it: after that nobody would give up this
// one.
void Shard::add_copy_chunk(std::uint64_t attempt, Arena chunk) {
  if (cuts_.mark.has_value() && cuts_.mark->attempt == attempt && cuts_.copies.taken() > 0)
    cuts_.copies.add(std::move(chunk));
}

void Shard::begin_save(std::uint64_t attempt) {
  if (!cuts_.mark.has_value() || cuts_.mark->attempt != attempt)
    throw FailedPreconditionError(
        str("cut ", attempt, " is not marked on this shard: mark it first"));
  if (cuts_.mark->saving)
    throw FailedPreconditionError(str("cut ", attempt, " is being saved already"));
  cuts_.mark->saving = true;
}

// All records of one variable come together: its tables' records first, then its rows, and then
// what its parts had seen, as their keys are ordered.
std::optional<Shard::FrozenRecord> Shard::next_frozen(std::uint64_t attempt) {
  using storage::RecordKind;
  verify_being_saved(attempt);
  Mark& mark = *cuts_.mark;
  while (mark.table < mark.tables.size()) {
    Table& table = *mark.tables[mark.table];
    const RecordKind kind = mark.kind;
    std::optional<storage::StoredRows> rows;
    if (kind == RecordKind::kRows && table.in_order()) {
      rows = table.take_frozen();
      note_taken(table, rows.has_value() ? rows->data.size() : 0);
      if (rows.has_value())
        return FrozenRecord{{table.spec().name, kind, rows->first_row}, std::move(*rows)};
      mark.passed += static_cast<std::uint64_t>(table.frozen_blocks());
    }
    mark.go_on();
    const storage::RecordKey key{table.spec().name, kind, table.range().begin};
    if (kind == RecordKind::kTable) return FrozenRecord{key, table.frozen_record()};
    if (kind == RecordKind::kSeen && table.frozen_seen().has_value())
      return FrozenRecord{key, *table.frozen_seen()};
  }
  return std::nullopt;
}

// To the variable's next part, or back to its first one for the next kind of records, or to the
// next variable.
void Shard::Mark::go_on() {
  const std::string& name = tables[table]->spec().name;
  if (table + 1 < tables.size() && tables[table + 1]->spec().name == name) {
    ++table;
    return;
  }
  if (kind == storage::RecordKind::kSeen) {
    ++table;
    kind = storage::RecordKind::kTable;
    return;
  }
  while (table > 0 && tables[table - 1]->spec().name == name) --table;
  kind =
      kind == storage::RecordKind::kTable ? storage::RecordKind::kRows : storage::RecordKind::kSeen;
}

// ---- restoring ----

std::uint64_t Shard::begin_restore(const std::vector<VariableId>& only) {
  if (session_ == 0)
    throw FailedPreconditionError(
        "this shard was not configured: configure it before it is restored");
  if (cuts_.mark.has_value() && cuts_.mark->saving)
    throw FailedPreconditionError(
        str("cut ", cuts_.mark->attempt, " is being saved by this shard: restore when it is done"));
  clear_mark();
  forget_restore();
  opened_.now = false;
  refuse_waiting();
  restore_.under_way = true;
  // Pieces that wait for the rest of their push were computed from rows that are about to go.
  staging_.let_go_of_all();
  rounds_.let_go(only);  // so were shares of these variables
  restore_.some = !only.empty();
  cuts_.tracked_since = cuts_.tracked_before = 0;
  // A restore of everything is a new beginning. What was sent by an older layout was meant for what
  // was here before, and is refused from now on.
  if (!restore_.some) layout_.first = layout_.now;
  if (is_logged()) options_.log->begins_anew();
  for (auto& [key, table] : tables_)
    if (only.empty() ||
        std::find(only.begin(), only.end(), static_cast<VariableId>(key >> 32)) != only.end()) {
      restore_.chosen.insert(&*table);
      waits_.reset(*table);
      // Rows that the checkpoint does not hold have to be at their initial values, and not at those
      // of now.
      table->begin_restore();
    }
  follow_restoring();
  ShardCounters::set(counters_.open, 0);
  if (!restoring_.any()) ShardCounters::set(counters_.restore.rows, 0);
  return restore_.number;
}

void Shard::verify_restore(std::uint64_t number) const {
  if (!restore_.under_way || restore_.number != number)
    throw CancelledError(
        "this restore was given up: another one, another session or another connection of the "
        "coordinator has begun since");
}

// Tables may go after this.
void Shard::forget_restore() { restore_ = Restore{.number = restore_.number + 1}; }

// The shard stays closed, if it was being restored: until a restore of all that was to be restored
// has ended well.
void Shard::change_hands() {
  clear_mark();
  ++restore_.number;
  waits_.give_turns();
}

void Shard::restore(const storage::TableRecord& record) {
  CAIRN_CHECK(restore_.under_way, "begin_restore() comes first");
  for (auto at = named_.lower_bound({record.variable, 0});
       at != named_.end() && at->first.first == record.variable; ++at) {
    Table& table = *at->second;
    if (restore_.chosen.count(&table) == 0) continue;
    const VariableSpec& spec = table.spec();
    if (spec.dtype != record.dtype || spec.shape != record.shape)
      throw FailedPreconditionError(
          str("variable '", record.variable, "' is ", dtype_name(spec.dtype),
              spec.shape.to_string(), ", in the checkpoint ", dtype_name(record.dtype),
              record.shape.to_string(), ": restore into a model of the same shape"));
    restore_.restored.insert(record.variable);
    if (record.rows.begin >= table.range().end || record.rows.end <= table.range().begin) continue;
    // A variable that no optimizer has claimed yet takes the checkpoint's slots: they are there
    // when one does.
    if (!is_kept(table.rule()) && !record.slots.empty()) {
      verify_rule(record.rule);
      table.set_rule(record.rule);
    }
    if (same_slots(table.rule(), record.rule) || !is_kept(table.rule()))
      table.set_updates(std::max(table.updates(), record.updates));
    else
      restore_.slots_reset.insert(record.variable);
    // A block of rows holds no more of its rule than the kind.
    if (table.rule().kind == record.rule.kind && !same_slots(table.rule(), record.rule))
      restore_.other_slots.insert(record.variable);
  }
}

void Shard::put_restored(Table& table, const storage::StoredRows& rows) {
  if (restore_.chosen.count(&table) == 0) return;
  const auto slots = restore_.other_slots.contains(table.spec().name) ? Table::Slots::kAsTheyAre
                                                                      : Table::Slots::kTake;
  restore_.rows += static_cast<std::uint64_t>(table.put(rows, slots));
  ShardCounters::set(counters_.restore.rows, restore_.rows);  // how far it is, for `status`
  if (table.tier() == nullptr) return;
  tiers_->note(table);
  settle();
}

void Shard::restore(const storage::StoredRows& rows, const std::string& variable) {
  CAIRN_CHECK(restore_.under_way, "begin_restore() comes first");
  for (auto at = named_.lower_bound({variable, 0});
       at != named_.end() && at->first.first == variable; ++at)
    put_restored(*at->second, rows);
}

void Shard::restore(const storage::StoredRows& rows, const std::string& variable,
                    std::int64_t part) {
  CAIRN_CHECK(restore_.under_way, "begin_restore() comes first");
  if (const auto at = named_.find({variable, part}); at != named_.end())
    put_restored(*at->second, rows);
}

void Shard::restore(const storage::SeenRows& seen, const std::string& variable, std::int64_t part) {
  CAIRN_CHECK(restore_.under_way, "begin_restore() comes first");
  const auto at = named_.find({variable, part});
  if (at != named_.end() && restore_.chosen.count(at->second) != 0) at->second->put(seen);
}

// The size of a row in the checkpoint is taken to be that of a row here.
void Shard::expect(std::uint64_t bytes, const std::string& variable, std::int64_t part) {
  const auto at = named_.find({variable, part});
  if (at == named_.end() || restore_.chosen.count(at->second) == 0) return;
  Table& table = *at->second;
  if (table.tier() != nullptr) return;  // not all of them are going to be in memory
  const auto rows = bytes / std::max<std::size_t>(1, table.saved_row_bytes());
  table.expect(table.held() + static_cast<std::int64_t>(rows));
}

RestoreReport Shard::end_restore(const AppliedSet& applied) {
  return end_restore(applied, StaleRows::kGo);
}

RestoreReport Shard::end_restore(const AppliedSet& applied, StaleRows stale) {
  CAIRN_CHECK(restore_.under_way, "begin_restore() comes first");
  if (restore_.some)
    applied_.merge(applied);  // the other variables keep what they have
  else
    applied_.restore(applied);
  restore_.under_way = false;
  // All tables, as an earlier restore of other ones may not have come to its end.
  for (const auto& [name, table] : named_)
    if (stale == StaleRows::kGo || !is_restored(*table)) table->end_restore();
  // Earlier pulls read rows that are gone: the new lineage has the pushes after them refused.
  if (opened_.before) lineage_ = lineage_.number * 0x9e3779b97f4a7c15u | 1;
  opened_.before = false;
  ShardCounters::set(counters_.lineage, lineage_.number);
  count_tables();
  return restore_report();
}

RestoreReport Shard::restore_report() const {
  RestoreReport report{
      restore_.rows, {}, {restore_.slots_reset.begin(), restore_.slots_reset.end()}};
  for (const auto& [name, table] : named_)
    if (restore_.chosen.count(&*table) != 0 && restore_.restored.count(name.first) == 0 &&
        (report.missing.empty() || report.missing.back() != name.first))
      report.missing.push_back(name.first);
  return report;
}

std::vector<std::pair<std::string, RowRange>> Shard::ranges() const {
  std::vector<std::pair<std::string, RowRange>> all;
  for (const auto& [name, table] : named_)
    if (restore_.chosen.count(&*table) != 0) all.emplace_back(name.first, table->range());
  return all;
}

}  // namespace cairn::ps
