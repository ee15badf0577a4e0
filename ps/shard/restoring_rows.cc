#include "ps/shard/restoring_rows.h"

#include <cstring>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

// Those of a block's rows that `wanted` names: local numbers, ascending, all of them in the block.
storage::StoredRows some_of(const storage::StoredRows& block, std::int64_t part_begin,
                            const std::vector<std::int64_t>& wanted) {
  storage::StoredRows some{block.dtype,     block.rule, block.slots, block.dim,
                           block.first_row, {},         {}};
  const std::size_t bytes = block.row_bytes();
  some.data.resize(wanted.size() * bytes);
  std::size_t at = 0;
  for (const std::int64_t row : wanted) {
    const auto offset = static_cast<std::uint64_t>(row + part_begin - block.first_row);
    while (block.offsets[at] != offset) ++at;
    std::memcpy(some.data.data() + some.offsets.size() * bytes, block.data.data() + at * bytes,
                bytes);
    some.offsets.push_back(offset);
  }
  return some;
}

}  // namespace

void RestoringRows::begin(Table& table, std::uint64_t restore, std::shared_ptr<CheckpointRows> from,
                          Table::Slots slots) {
  Coming& coming = tables_[&table];
  coming = {};
  coming.restore = restore;
  coming.from = std::move(from);
  coming.slots = slots;
  if (!table.hashed()) coming.here.resize(static_cast<std::size_t>(table.rows() + 63) / 64);
}

bool RestoringRows::has(const Table& table, std::uint64_t restore) const {
  const auto found = tables_.find(&table);
  return found != tables_.end() && found->second.restore == restore;
}

RestoringRows::Coming* RestoringRows::find(const Table* table, std::uint64_t restore) {
  const auto found = tables_.find(table);
  return found != tables_.end() && found->second.restore == restore ? &found->second : nullptr;
}

// ---- rows come ----

void RestoringRows::add_missing(Table& table, const Coming& coming,
                                std::span<const std::int64_t> rows,
                                std::vector<std::int64_t>& missing) {
  if (!table.hashed()) {
    for (const std::int64_t row : rows)
      if (!coming.has_come(row)) missing.push_back(row);
    return;
  }
  absent_.clear();
  table.add_absent(rows, absent_);
  places_.resize(absent_.size());
  coming.not_there.find(absent_, places_.data());
  for (std::size_t i = 0; i < absent_.size(); ++i)
    if (places_[i] == IdIndex::kAbsent) missing.push_back(absent_[i]);
}

// An update may have changed a row since the block was read: only rows that have not come are put.
void RestoringRows::put_missing(Table& table, Coming& coming, const storage::StoredRows& rows) {
  missing_.clear();
  add_missing(table, coming, table.rows_of(rows), missing_);
  if (missing_.empty()) return;
  if (missing_.size() == rows.offsets.size())
    put_(table, rows, coming.slots);
  else
    put_(table, some_of(rows, table.range().begin, missing_), coming.slots);
  if (!table.hashed())
    for (const std::int64_t row : missing_) coming.set_come(row);
}

void RestoringRows::put(Table& table, const storage::StoredRows& rows) {
  put_missing(table, tables_.at(&table), rows);
}

// Rows that were looked for and have not come are in no database.
void RestoringRows::note_looked_for(Table& table, Coming& coming,
                                    const std::vector<std::int64_t>& rows) {
  missing_.clear();
  add_missing(table, coming, rows, missing_);
  if (!table.hashed()) {
    table.reset_stale(missing_);
    for (const std::int64_t row : missing_) coming.set_come(row);
    return;
  }
  places_.resize(missing_.size());
  coming.not_there.find_or_add(missing_, places_.data());
}

// Requests go on from inside the callbacks: the table is none of `has()` by then.
void RestoringRows::end(Table& table) {
  const auto found = tables_.find(&table);
  if (found == tables_.end()) return;
  const Coming coming = std::move(found->second);
  tables_.erase(found);
  for (const Fetched& fetched : coming.whole) fetched({}, nullptr);
}

void RestoringRows::fail(std::uint64_t restore, std::exception_ptr error) {
  // In the order of names: addresses differ from one run of a simulation to the next.
  std::map<std::pair<std::string, std::int64_t>, std::vector<Fetched>> ended;
  for (auto& [table, coming] : tables_) {
    if (coming.restore != restore) continue;
    coming.error = error;
    ended[{table->spec().name, table->range().begin}] = std::exchange(coming.whole, {});
  }
  for (const auto& [table, whole] : ended)
    for (const Fetched& fetched : whole) fetched({}, error);
}

void RestoringRows::slots_changed(const Table& table) {
  if (const auto found = tables_.find(&table); found != tables_.end())
    found->second.slots = Table::Slots::kAsTheyAre;
}

void RestoringRows::hurry(const Table& table) {
  if (const auto found = tables_.find(&table); found != tables_.end())
    found->second.from->hurry(table);
}

std::string RestoringRows::names() const {
  std::set<std::string> all;
  for (const auto& [table, coming] : tables_) all.insert(table->spec().name);
  std::string text;
  for (const std::string& name : all) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::exception_ptr RestoringRows::error() const {
  for (const auto& [table, coming] : tables_)
    if (coming.error != nullptr) return coming.error;
  return nullptr;
}

// ---- requests ----

void RestoringRows::find_elsewhere(const WantedRows& wanted, Access /*access*/,
                                   std::vector<std::int64_t>& elsewhere) {
  const auto found = tables_.find(wanted.table);
  if (found == tables_.end()) return;
  if (wanted.all)
    elsewhere.push_back(kEveryRow);
  else
    add_missing(*wanted.table, found->second, wanted.rows, elsewhere);
}

// A read that ends when the table is complete, or has begun anew, brings nothing: in the first case
// its rows have come, in the second nobody waits for them.
void RestoringRows::fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) {
  Coming& coming = tables_.at(&table);
  if (coming.error != nullptr) {
    coming.from->read(table, {},
                      [fetched = std::move(fetched), error = coming.error](
                          const auto&, std::exception_ptr) { fetched({}, error); });
    return;
  }
  if (rows.front() == kEveryRow) {
    coming.whole.push_back(std::move(fetched));
    coming.from->hurry(table);
    return;
  }
  coming.from->read(table, rows,
                    [this, &table, restore = coming.restore, rows, fetched = std::move(fetched),
                     alive = std::weak_ptr<const bool>(alive_)](
                        const std::vector<storage::StoredRows>& blocks, std::exception_ptr error) {
                      if (alive.expired()) return;
                      Coming* const here = find(&table, restore);
                      if (here == nullptr) return fetched({}, nullptr);
                      try {
                        if (error != nullptr) std::rethrow_exception(error);
                        for (const storage::StoredRows& block : blocks)
                          put_missing(table, *here, block);
                        note_looked_for(table, *here, rows);
                      } catch (const Error&) {
                        error = std::current_exception();
                      }
                      fetched({}, std::move(error));
                    });
}

void RestoringRows::reset(Table& table) { tables_.erase(&table); }

}  // namespace cairn::ps
