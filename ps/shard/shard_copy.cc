// Shard as the one that is copied, and as a copy of another one's rows.
#include "ps/shard/shard_copy.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::ps {

// ---- the one that is copied ----

std::string Shard::copy_obstacle() const {
  for (const auto& [name, table] : named_) {
    if (table->tier() != nullptr)
      return str("variable '", name.first, "' may have rows on a disk (--memory-limit)");
    if (!table->spec().policy.keeps_all())
      return str("variable '", name.first, "' does not keep all rows (its policy)");
  }
  if (restoring_.any()) return str("rows of ", still_restoring(), " are still being restored");
  return "";
}

ShardBooks Shard::books() const {
  ShardBooks books{session_,
                   lineage_,
                   counter_,
                   layout_.first,
                   counters_.follow.step.load(std::memory_order_relaxed),
                   applied_.ledger(),
                   {},
                   rounds_.books()};
  for (const auto& [key, table] : tables_)
    books.tables.push_back({{static_cast<VariableId>(key >> 32), static_cast<std::uint32_t>(key)},
                            table->updates(),
                            table->written()});
  std::ranges::sort(books.tables, {}, &ShardBooks::OfTable::id);
  return books;
}

// The log's copies of the values are what is applied from here on: where they lie now, a worker
// may write to them, and the copies of the rows would differ.
void Shard::tell(RowChange change, Plan& plan) {
  change.updates.reserve(plan.updates.size());
  for (const PlannedUpdate& update : plan.updates)
    change.updates.push_back({update.header, update.ids, update.values});
  options_.log->changed(change);
  for (std::size_t i = 0; i < plan.updates.size(); ++i)
    plan.updates[i].values = change.updates[i].values;
  plan.joined.push_back(std::move(change.kept));
}

RowChange ShardCopy::share(const StepContext& step, std::uint32_t slice, const Share& kept) const {
  RowChange change{step, slice, nullptr, kept.encoding, {}};
  const PushPiece piece = kept.piece();
  for (const auto& update : shard_.plan({&piece, 1}, kept.encoding).updates)
    change.updates.push_back({update.header, update.ids, update.values});
  return change;
}

std::vector<RowChange> ShardCopy::shares() const {
  std::vector<RowChange> all;
  for (const StagedRounds::Kept& kept : shard_.rounds_.all()) {
    StepContext step;
    step.session = shard_.session_;
    step.sent_layout = kept.sent_layout;
    step.closure = kept.closure;
    step.round = kept.round;
    all.push_back(share(step, kept.slice, *kept.share));
  }
  return all;
}

// ---- the copy ----

void ShardCopy::verify(std::uint64_t session) const {
  if (session != shard_.session_ || session == 0)
    throw FailedPreconditionError(str("this shard belongs to session ", shard_.session_,
                                      ", the copied rows to session ", session));
  if (shard_.opened_.now)
    throw FailedPreconditionError(
        "this shard answers for its rows: it takes none of another one's");
}

void ShardCopy::begin(const ShardBooks& books) {
  verify(books.session);
  if (const std::string why = shard_.copy_obstacle(); !why.empty())
    throw FailedPreconditionError(str("this shard cannot copy another one's rows: ", why));
  for (const ShardBooks::OfTable& of : books.tables) shard_.find(of.id.variable, of.id.part);
  shard_.applied_.take(books.ledger);
  shard_.clear_mark();
  shard_.forget_restore();
  shard_.staging_.clear();
  shard_.rounds_.begin(books.rounds);
  shard_.lineage_ = books.lineage;
  shard_.counter_ = books.counter;
  shard_.layout_.first = books.first_layout;
  shard_.layout_.copied = true;
  shard_.layout_.with_shares = books.with_shares;
  for (auto& [key, table] : shard_.tables_) {
    shard_.waits_.reset(*table);
    table->begin_restore();
    table->end_restore();
  }
  for (const ShardBooks::OfTable& of : books.tables) {
    Table& table = shard_.find(of.id.variable, of.id.part);
    table.set_updates(of.updates);
    table.set_written(of.written);
  }
  ShardCounters::set(shard_.counters_.lineage, books.lineage.number);
  ShardCounters::set(shard_.counters_.follow.step, books.step);
  shard_.count_tables();
}

void ShardCopy::put(TableId id, const storage::StoredRows& rows) {
  verify(shard_.session_);
  Table& table = shard_.find(id.variable, id.part);
  const std::int64_t rows_before = Shard::rows_of(table);
  const std::size_t bytes = table.memory_bytes();
  table.put(rows);
  shard_.count_growth(table, rows_before, bytes);
}

void ShardCopy::replay(const PushRequest& push) {
  verify(push.step.session);
  if (shard_.applied_.contains(push.step.closure, push.step.push_number, push.slice))
    throw InvalidArgumentError(str("push ", push.step.push_number, " of closure ",
                                   push.step.closure,
                                   " comes to a copy of the rows a second time"));
  const PushPiece whole{push.headers, push.ids, push.values, nullptr};
  if (push.step.round != 0) {
    shard_.keep_share(push, {&whole, 1});
    return;
  }
  shard_.finish_push(push, shard_.plan({&whole, 1}, push.encoding));
}

std::vector<std::pair<TableId, Table*>> ShardCopy::tables() const {
  std::vector<std::pair<TableId, Table*>> all;
  for (const auto& [key, table] : shard_.tables_)
    all.push_back(
        {{static_cast<VariableId>(key >> 32), static_cast<std::uint32_t>(key)}, table.get()});
  std::ranges::sort(all, {}, [](const auto& one) { return one.first; });
  return all;
}

void ShardCopy::compare(TableId id, const SummedRows& theirs) {
  verify(shard_.session_);
  const auto found = shard_.tables_.find(Shard::key(id.variable, id.part));
  if (found != shard_.tables_.end()) ps::compare(*found->second, theirs);
}

void ShardCopy::replay(const RoundRequest& round, const PushPiece& sum) {
  verify(round.session);
  shard_.finish_round(round, shard_.plan({&sum, 1}, RowEncoding::kRaw));
}

}  // namespace cairn::ps
