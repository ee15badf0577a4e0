// Table's rows that leave memory, for good or for a disk, and those that come back; and the freeze
// of a table of which rows may have left.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "ps/table/table.h"

namespace cairn::ps {

// ---- rows that go for good ----

void Table::note_taken(std::span<const std::int64_t> places) {
  if (turnover_ != nullptr) turnover_->update(places);
  if (tier_ != nullptr) return;
  taken_places_.resize((static_cast<std::size_t>(memory_.held()) + 63) / 64);
  for (const std::int64_t place : places)
    taken_places_[static_cast<std::size_t>(place) >> 6] |= std::uint64_t{1} << (place & 63);
}

// During a save a row that goes is copied aside. Without room for that it stays until later.
void Table::turn_over() {
  constexpr std::size_t kRowsAtOnce = 1024;
  for (;;) {
    const std::vector<std::int64_t> places = turnover_->choose(kRowsAtOnce);
    if (places.empty()) return;
    const Places going{{}, places, {}, {}};
    if (snapshot_.copies_on_write() &&
        snapshot_.room_for(snapshot_.rows_to_copy(going)) > pool_.room())
      return turnover_->stay(places);
    let_go(places);
  }
}

void Table::let_go(std::span<const std::int64_t> places) {
  before_write(places);
  std::vector<std::int64_t> rows;
  if (!followers_.empty())
    for (const std::int64_t place : places) rows.push_back(memory_.row_at(place));
  tell_left(places, rows, TableChanges::To::kNowhere);
  turnover_->left(places);
  if (tier_ != nullptr) tier_->drop(places);
  for (const std::int64_t place : places) {
    const std::int64_t row = memory_.row_at(place);
    departures_->add({&row, 1}, Departures::To::kNowhere);
    memory_.let_go(place);
    if (tier_ == nullptr)
      taken_places_[static_cast<std::size_t>(place) >> 6] &= ~(std::uint64_t{1} << (place & 63));
  }
  snapshot_.left(places);
  gone_count_ += places.size();
}

// Looks at some of the rows that are elsewhere, if it is time to: no row goes that nobody updates
// any more, where none is updated.
void Table::sweep() {
  if (tier_ == nullptr || !evicts()) return;
  tier_->sweep([this](std::span<const std::int64_t> rows) {
    departures_->add(rows, Departures::To::kNowhere);
    for (const auto& [subscriber, changes] : followers_) changes->gone(rows);
    gone_count_ += rows.size();
  });
}

// ---- rows that are elsewhere ----

// Rows that lie at places of other rows that have left come as any rows do; only that they are as
// their records say is the tier's to know.
void Table::bring(const TableTier::Fetched& fetched) {
  storage::StoredRows rows = saved_layout();
  for (const std::int64_t row : fetched.rows)
    rows.offsets.push_back(static_cast<std::uint64_t>(row));
  rows.first_row = range().begin;
  rows.data = fetched.saved;
  put(rows, Slots::kTake, Change::kNo);
  tier_->came(fetched);
}

std::size_t Table::evict(std::size_t most, TableTier::Moment before) {
  const TableTier::Leaving leaving = tier_->choose(std::min(most, tier_->store_room()), before);
  if (leaving.empty()) return 0;
  const Places places{{}, leaving.places, {}, {}};
  if (snapshot_.copies_on_write() &&
      snapshot_.room_for(snapshot_.rows_to_copy(places)) > pool_.room()) {
    tier_->stay(leaving);
    return 0;
  }
  before_write(leaving.places);
  Snapshot::Changed changed = snapshot_.changed_among(leaving.places);
  for (auto* some : {&changed.since, &changed.before})  // rows from here on
    for (std::int64_t& place : *some) place = memory_.row_at(place);
  // The rows' numbers go with their places.
  std::vector<std::int64_t> rows;
  if (!followers_.empty())
    for (const std::int64_t place : leaving.places) rows.push_back(memory_.row_at(place));
  try {
    tier_->leave(leaving);
  } catch (const Error&) {
    tier_->stay(leaving);
    throw;
  }
  departures_->add(changed.since, Departures::To::kDisk);
  departures_->add_of_last_delta(changed.before);
  snapshot_.left(leaving.places);
  tier_->set_beside(bytes_beside());
  tell_left(leaving.places, rows, TableChanges::To::kDisk);
  return leaving.places.size();
}

void Table::compact() {
  constexpr std::int64_t kPlacesAtOnce = 4096;
  if (snapshot_.frozen()) return;
  lending_.before_write_all(*memory_.arena());
  tier_->compact(kPlacesAtOnce, [this](std::int64_t from, std::int64_t to) {
    snapshot_.moved(from, to);
    for (const auto& [subscriber, changes] : followers_) changes->moved(from, to);
    if (turnover_ != nullptr) turnover_->moved(from, to);
  });
}

// Where rows leave their places. A delta holds those that changed, wherever they are by now, and
// says which went for good and have not come again.
void Table::freeze_places(Snapshot::Rows rows, Snapshot::Tracking tracking) {
  const bool is_delta = snapshot_.knows(rows) && !departures_->lost(rows);
  departures_->freeze(is_delta, rows, tracking);
  std::vector<std::int64_t>&gone = departures_->gone(), &on_disk = departures_->on_disk();
  const auto take_out_those_here = [this](std::vector<std::int64_t>& from) {
    const Places found = memory_.find(from);
    for (std::size_t i = 0; i < found.absent.size(); ++i) from[i] = from[found.absent[i]];
    from.resize(found.absent.size());
  };
  std::vector<std::int64_t> came_back = on_disk;
  take_out_those_here(gone);
  take_out_those_here(on_disk);
  std::erase_if(came_back, [&on_disk](std::int64_t row) {
    return std::binary_search(on_disk.begin(), on_disk.end(), row);
  });
  snapshot_.touch(memory_.find(came_back));
  if (tier_ == nullptr) taken_places_.resize((static_cast<std::size_t>(memory_.held()) + 63) / 64);
  snapshot_.freeze(is_delta ? rows : Snapshot::Rows::kAll, tracking,
                   tier_ == nullptr ? taken_places_
                   : is_delta       ? tier_->updated_places()
                                    : tier_->dirty_places());
  if (tier_ == nullptr) return;
  cold_ = is_delta ? tier_->freeze(std::exchange(on_disk, {})) : tier_->freeze();
  tier_->set_beside(bytes_beside());
}

}  // namespace cairn::ps
