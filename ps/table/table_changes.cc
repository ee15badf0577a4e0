#include "ps/table/table_changes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "ps/table/table.h"

namespace cairn::ps {
namespace {

// Rows that are looked for on a disk at a time, and that are looked up in memory at a time.
constexpr std::size_t kLookedMax = 2048, kLookUps = 4096;

void make_unique(std::vector<std::int64_t>& rows) {
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

}  // namespace

// ---- told by the table ----

void TableChanges::grow(std::int64_t held) {
  changed_.grow(held);
  held_ = held;
}

void TableChanges::all_changed(std::int64_t held) {
  if (!begun_) return;
  if (held > held_) grow(held);
  changed_.add(RowRange{0, held});
}

// A row that goes for good is always told of: the subscriber may have it. One that leaves for the
// disk is as the subscriber has it, unless its bit says otherwise, or it is just being read there.
void TableChanges::leaves(std::int64_t place, std::int64_t row, To to) {
  if (!begun_) return;
  if (place >= held_) grow(place + 1);
  changed_.settle();
  const bool pending = changed_.has(place);
  if (pending) changed_.remove({&place, 1});
  if (pending || to == To::kNowhere ||
      std::binary_search(looked_.rows.begin(), looked_.rows.end(), row))
    note_away(row);
}

void TableChanges::gone(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) note_away(row);
}

void TableChanges::moved(std::int64_t from, std::int64_t to) {
  if (!begun_) return;
  if (std::max(from, to) >= held_) grow(std::max(from, to) + 1);
  changed_.move(from, to);
}

void TableChanges::note_away(std::int64_t row) {
  if (!begun_) return;
  const auto at = std::lower_bound(looked_.rows.begin(), looked_.rows.end(), row);
  if (at != looked_.rows.end() && *at == row)
    looked_.found[static_cast<std::size_t>(at - looked_.rows.begin())] = Found::kOutdated;
  away_.push_back(row);
  if (away_.size() <= kAwayMax) return;
  make_unique(away_);
  // Half of the bound has to be free again, so that the next sorting is not soon.
  if (away_.size() > kAwayMax / 2) begin_anew();
}

void TableChanges::begin_anew() { *this = TableChanges(); }

// ---- a beginning ----

void TableChanges::start(Table& table) {
  begun_ = true;
  held_ = table.held();
  changed_ = TouchedRows(held_);
  table.mark_touched(changed_);
  beginning_ = {.told = false, .complete = false, .complete_told = false};
  if (table.tier() != nullptr) cut_ = table.tier()->freeze();
  if (cut_ != nullptr) cut_left_ = cut_->rows();
  if (cut_left_ == 0) cut_.reset();
}

// Only the numbers are taken: what a row is by now is known when it is looked for.
void TableChanges::read_cut(const Table& table) {
  if (cut_ == nullptr || reading_cut_ || away_.size() > kLookUps) return;
  if (cut_left_ == 0) return cut_.reset();
  reading_cut_ = true;
  const std::uint64_t most = std::min<std::uint64_t>(cut_left_, kLookedMax);
  cut_left_ -= most;
  const std::int64_t rows = table.rows();
  cut_->next(
      most, [this, rows, alive = std::weak_ptr<const bool>(alive_)](const storage::ReadRows& read) {
        if (alive.expired()) return;
        reading_cut_ = false;
        error_ = read.error;
        for (const std::uint64_t key : read.keys)
          if (key < static_cast<std::uint64_t>(rows))
            away_.push_back(static_cast<std::int64_t>(key));
      });
}

// Once all rows that were away at the beginning were looked for, the hand has to go over all places
// once more, where some of them have been found.
void TableChanges::follow_beginning(bool coming) {
  Beginning& now = beginning_;
  if (now.complete) return;
  if (coming || cut_ != nullptr) return now.again();
  if (old_.empty() && !looking()) ++now.batches;
  // The last rows of the cut are in the batch after this one, at the latest.
  const bool none_away = away_.empty() && old_.empty() && !looking();
  if (now.passes < 0 && (none_away || now.batches > 1)) now.passes = hand_ == 0 ? 1 : 2;
}

// ---- an answer ----

bool TableChanges::take(Table& table, const Asked& asked, ChangedRows::OfTable header,
                        ChangedRows& out) {
  if (error_ != nullptr) {
    const std::exception_ptr error = error_;
    begin_anew();
    std::rethrow_exception(error);
  }
  if (!begun_) start(table);
  const std::size_t first = out.rows.size(), first_gone = out.gone.size(), before = out.bytes();
  const std::size_t row_bytes = table.row_bytes();
  // No more than half is for rows that have left, so that the hand goes on.
  if (looked_.ready) take_looked(table, row_bytes, asked.bytes_max / 2, out);
  read_cut(table);
  take_away(table, asked.bytes_max / 4 / sizeof(std::int64_t) + 1, out);
  follow_beginning(asked.coming);

  const std::size_t taken = out.bytes() - before;
  const std::size_t left = asked.bytes_max - std::min(asked.bytes_max, taken);
  const std::size_t most = left / (row_bytes + sizeof(std::int64_t));
  const bool all = take_places(table, std::max<std::size_t>(most, taken == 0 ? 1 : 0), out);
  if (all && beginning_.passes > 0 && --beginning_.passes == 0) beginning_.complete = true;
  away_since_ = away_.empty() ? asked.covered : away_since_;

  header.rows = static_cast<std::uint32_t>(out.rows.size() - first);
  header.gone = static_cast<std::uint32_t>(out.gone.size() - first_gone);
  header.begins = !std::exchange(beginning_.told, true);
  header.complete = beginning_.complete && !beginning_.complete_told;
  beginning_.complete_told = beginning_.complete;
  sent_.rows.insert(sent_.rows.end(), out.rows.end() - header.rows, out.rows.end());
  sent_.gone.insert(sent_.gone.end(), out.gone.end() - header.gone, out.gone.end());
  sent_.begins |= header.begins;
  sent_.complete |= header.complete;
  if (header.rows + header.gone > 0 || header.begins || header.complete)
    out.tables.push_back(header);
  return all;
}

void TableChanges::take_looked(Table& table, std::size_t row_bytes, std::size_t bytes_max,
                               ChangedRows& out) {
  const Looked looked = std::exchange(looked_, {});
  std::vector<std::int64_t> here;
  table.add_places(looked.rows, here);  // -1: not in memory
  for (std::size_t i = 0; i < looked.rows.size(); ++i) {
    const std::int64_t row = looked.rows[i];
    if (looked.found[i] == Found::kOutdated) continue;  // it is among those that left since
    if (here[i] >= 0) {
      if (here[i] >= held_) grow(table.held());
      changed_.add({&here[i], 1});
    } else if (out.bytes() > bytes_max && i > 0) {
      away_since_ = away_.empty() ? old_since_ : std::min(away_since_, old_since_);
      away_.push_back(row);
      if (!beginning_.complete) beginning_.again();
    } else if (looked.found[i] == Found::kRow) {
      out.rows.push_back(row);
      const auto from = looked.values.begin() + static_cast<std::ptrdiff_t>(i * row_bytes);
      out.values.insert(out.values.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes));
    } else {
      out.gone.push_back(row);
    }
  }
}

void TableChanges::take_away(Table& table, std::size_t gone_max, ChangedRows& out) {
  if (looking()) return;
  if (old_.empty()) {
    old_ = std::exchange(away_, {});
    old_since_ = away_since_;
    make_unique(old_);
  }
  std::vector<std::int64_t> on_disk, places;
  while (!old_.empty() && gone_max > 0 && on_disk.size() < kLookedMax) {
    const std::size_t some = std::min({old_.size(), kLookUps, gone_max});
    const std::vector<std::int64_t> rows(old_.end() - static_cast<std::ptrdiff_t>(some),
                                         old_.end());
    old_.resize(old_.size() - some);
    places.clear();
    table.add_places(rows, places);
    for (std::size_t i = 0; i < some; ++i) {
      if (places[i] >= 0) {
        if (places[i] >= held_) grow(table.held());
        changed_.add({&places[i], 1});
      } else if (table.tier() != nullptr && table.tier()->may_be_elsewhere(rows[i])) {
        on_disk.push_back(rows[i]);
      } else {
        out.gone.push_back(rows[i]);
      }
    }
    gone_max -= some;
  }
  if (!on_disk.empty()) look_for(table, std::move(on_disk));
}

void TableChanges::look_for(Table& table, std::vector<std::int64_t> rows) {
  std::ranges::sort(rows);
  looked_ = {rows, std::vector<Found>(rows.size(), Found::kNothing), {}, false};
  const std::size_t row_bytes = table.row_bytes(), saved_bytes = table.saved_row_bytes();
  looked_.values.resize(rows.size() * row_bytes);
  table.tier()->fetch(
      rows, [this, row_bytes, saved_bytes,
             alive = std::weak_ptr<const bool>(alive_)](const TableTier::Fetched& read) {
        if (alive.expired()) return;
        error_ = read.error;
        looked_.ready = true;
        for (std::size_t i = 0; i < read.rows.size(); ++i) {
          const auto at = std::lower_bound(looked_.rows.begin(), looked_.rows.end(), read.rows[i]) -
                          looked_.rows.begin();
          Found& found = looked_.found[static_cast<std::size_t>(at)];
          if (found == Found::kNothing) found = Found::kRow;
          std::memcpy(looked_.values.data() + static_cast<std::size_t>(at) * row_bytes,
                      read.saved.data() + i * saved_bytes, row_bytes);
        }
      });
}

// Up to `most` rows from the hand on. False: the last place was not reached.
bool TableChanges::take_places(Table& table, std::size_t most, ChangedRows& out) {
  changed_.settle();
  const auto words = static_cast<std::int64_t>(changed_.words().size());
  std::vector<std::int64_t> places;
  bool all = true;
  for (std::int64_t word = hand_ / 64; word < words && all; ++word) {
    std::uint64_t bits = changed_.word_of(word * 64);
    if (word == hand_ / 64) bits &= ~std::uint64_t{0} << (hand_ & 63);
    for (; bits != 0; bits &= bits - 1) {
      const std::int64_t place = word * 64 + std::countr_zero(bits);
      if (places.size() == most) {
        hand_ = place;
        all = false;
        break;
      }
      places.push_back(place);
    }
  }
  if (all) hand_ = 0;
  changed_.remove(places);
  table.add_rows_at(places, out.rows, out.values);
  return all;
}

void TableChanges::arrived() { sent_ = {}; }

void TableChanges::lost(TimePoint covered) {
  if (!begun_) return;
  Sent sent = std::exchange(sent_, {});
  if (away_.empty() || covered < away_since_) away_since_ = covered;
  for (const std::int64_t row : sent.rows) note_away(row);
  for (const std::int64_t row : sent.gone) note_away(row);
  if (!begun_) return;  // too many had left
  if (sent.begins) beginning_.told = false;
  if (beginning_.complete && !sent.complete) return;
  beginning_.complete = beginning_.complete_told = false;
  beginning_.again();
}

TimePoint TableChanges::covered(TimePoint by_places) const {
  if (!away_.empty()) by_places = std::min(by_places, away_since_);
  if (!old_.empty() || looking()) by_places = std::min(by_places, old_since_);
  return by_places;
}

std::size_t TableChanges::bytes() const {
  return static_cast<std::size_t>(static_cast<double>(held_) * TouchedRows::kBytesARow) +
         (away_.capacity() + old_.capacity() + sent_.rows.capacity() + sent_.gone.capacity()) *
             sizeof(std::int64_t) +
         looked_.values.capacity();
}

}  // namespace cairn::ps
