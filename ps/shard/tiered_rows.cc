#include "ps/shard/tiered_rows.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::ps {
namespace {

// So many rows leave with one write.
constexpr std::size_t kRowsAtOnce = 1024;
// A table may be above its share by a thirty-second before requests wait for rows to leave.
constexpr std::size_t kTolerance = 32;

}  // namespace

TieredRows::TieredRows(TieringOptions options)
    : options_(std::move(options)),
      budget_(options_.memory_bytes),
      shared_{&budget_, options_.make_store, &counters_, options_.rows_min, &moment_} {}

void TieredRows::set_other_bytes(std::size_t bytes) {
  budget_.set(options_.memory_bytes - std::min(options_.memory_bytes, bytes));
}

void TieredRows::find_elsewhere(const WantedRows& wanted, Access access,
                                std::vector<std::int64_t>& elsewhere) {
  TableTier* const tier = wanted.table->tier();
  if (tier == nullptr) return;
  used_.insert(wanted.table);
  tier->find_elsewhere(wanted.rows, access == Access::kRead, elsewhere);
}

void TieredRows::fetch(Table& table, const std::vector<std::int64_t>& rows, Fetched fetched) {
  bring_in(table, rows, [fetched = std::move(fetched)](std::exception_ptr error) {
    fetched({}, std::move(error));
  });
}

bool TieredRows::bring(Table& table, std::span<const std::int64_t> rows, Brought done) {
  std::vector<std::int64_t> elsewhere;
  table.tier()->find_elsewhere(rows, false, elsewhere);
  if (elsewhere.empty()) return false;
  bring_in(table, elsewhere, std::move(done));
  return true;
}

void TieredRows::bring_in(Table& table, const std::vector<std::int64_t>& rows, Brought done) {
  table.tier()->fetch(rows, [this, &table, done = std::move(done)](const TableTier::Fetched& read) {
    std::exception_ptr error = read.error;
    try {
      if (error == nullptr) table.bring(read);
    } catch (const Error&) {
      error = std::current_exception();
    }
    note(table);
    done(std::move(error));
  });
}

void TieredRows::reset(Table& table) {
  used_.erase(&table);
  if (table.tier() != nullptr) table.tier()->reset();
}

void TieredRows::settle(Moment oldest) {
  ++moment_;
  crowded_ = false;
  std::erase_if(used_, [&](Table* table) { return make_room(*table, oldest); });
}

// False: look at the table again.
bool TieredRows::make_room(Table& table, Moment before) {
  TableTier& tier = *table.tier();
  tier.forget_looks(before);
  const std::size_t first = tier.surplus();
  bool stuck = false;
  std::size_t left = first;
  try {
    while (left > 0) {
      const std::size_t gone = table.evict(std::min(left, kRowsAtOnce), before);
      if (gone == 0) break;
      left -= std::min(left, gone);
    }
    full_ = full_ && left == first;
    table.compact();
  } catch (const UnavailableError&) {
    stuck = true;  // writes have to end, or the cleaner has to make space
  } catch (const ResourceExhaustedError& error) {
    if (!full_)
      log_warning("no row leaves memory for the disk any more: ", error.what(),
                  ". The ps grows above its memory limit; give it space on the disk, or more ps");
    full_ = true;
    return left == 0;
  }
  stuck = stuck || tier.store_room() == 0 || table.copies_on_write();
  if (left > static_cast<std::size_t>(table.used()) / kTolerance && stuck && !full_)
    crowded_ = true;
  return left == 0;
}

}  // namespace cairn::ps
