// TableTier's rows that leave memory: for its store, or for good.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "ps/tier/table_tier.h"

namespace cairn::ps {
namespace {

// Uses are counted, and rows leave, from where so much of the budget is taken.
constexpr double kShort = 0.9;

}  // namespace

// ---- rows leave ----

// Rows that nobody has asked for since then come in the order of their places.
void TableTier::track() {
  fit();
  lfu_ = std::make_unique<TinyLfu>(
      static_cast<TinyLfu::Slot>(std::max(shared_.rows_min, memory_.held())));
  for (std::int64_t place = 0; place < memory_.held(); ++place)
    if (memory_.row_at(place) != IdIndex::kFree) enter(place);
}

std::size_t TableTier::surplus() {
  tell_bytes();
  const MemoryBudget& budget = *shared_.budget;
  if (budget.has_room(share_, 0)) places_max_ = std::max(places_max_, memory_.held());
  if (lfu_ == nullptr &&
      static_cast<double>(budget.total()) > kShort * static_cast<double>(budget.bytes()))
    track();
  // Books of rows that are elsewhere grow, so that there is less for those in memory.
  if (budget.is_exceeded() && !budget.has_room(share_, 0)) {
    const auto excess = static_cast<std::int64_t>((budget.total() - budget.bytes()) /
                                                  std::max<std::size_t>(memory_.place_bytes(), 1));
    places_max_ = std::min(places_max_, memory_.held() - std::min(excess, memory_.held() / 16));
  }
  const std::int64_t most = std::max(places_max_, shared_.rows_min);
  return memory_.used() > most ? static_cast<std::size_t>(memory_.used() - most) : 0;
}

bool TableTier::compact(std::int64_t most, const PlaceMoved& moved) {
  const std::int64_t held = memory_.held(), least = std::max(places_max_, shared_.rows_min);
  // A little more, left by one large request, is as well kept for the next.
  if (held - least <= held / 64 && !shrinking_) return false;
  shrinking_ = true;
  for (; most > 0 && memory_.held() > least && memory_.used() < memory_.held(); --most) {
    const auto last = static_cast<std::size_t>(memory_.held() - 1);
    const std::int64_t place = memory_.drop_last_place();
    if (place == IdIndex::kAbsent) continue;
    const auto to = static_cast<std::size_t>(place);
    records_[to] = std::exchange(records_[last], kNone);
    used_[to] = used_[last];
    set_dirty(place, dirty(static_cast<std::int64_t>(last)));
    set_dirty(static_cast<std::int64_t>(last), false);
    lfu_->move(static_cast<TinyLfu::Slot>(last), static_cast<TinyLfu::Slot>(to));
    moved(static_cast<std::int64_t>(last), place);
  }
  if (memory_.held() == held) return false;
  if (memory_.held() <= least) {
    memory_.give_back();
    shrinking_ = false;
  }
  tell_bytes();
  return true;
}

TableTier::Leaving TableTier::choose(std::size_t most, Moment before) {
  Leaving rows;
  if (lfu_ == nullptr) return rows;
  const auto may_leave = [&](TinyLfu::Slot slot) { return earlier(used_[slot], before); };
  while (rows.places.size() < most) {
    const std::optional<TinyLfu::Slot> slot = lfu_->choose(may_leave);
    if (!slot.has_value()) break;
    lfu_->remove(*slot);
    rows.places.push_back(*slot);
    if (dirty(*slot)) rows.dirty.push_back(*slot);
  }
  return rows;
}

void TableTier::stay(const Leaving& rows) {
  for (const std::int64_t place : rows.places) enter(place);
}

void TableTier::leave(const Leaving& rows) {
  if (!rows.dirty.empty()) append(rows.dirty);
  if (turnover_ != nullptr) turnover_->left(rows.places);
  for (const std::int64_t place : rows.places) {
    storage::Place& record = records_[static_cast<std::size_t>(place)];
    if (std::exchange(record, kNone) != kNone) --clean_;
    set_dirty(place, false);
    if (!not_there_.empty()) not_there_.erase(memory_.row_at(place));
    memory_.let_go(place);
  }
  shared_.counters->evicted += rows.places.size();
  shared_.counters->written += rows.dirty.size();
}

// The rows at these places are in the store, too. If it throws, none is.
void TableTier::append(const std::vector<std::int64_t>& places) {
  if (store_ == nullptr)
    store_ = shared_.make_store(name_, record_bytes(),
                                [this](std::span<const storage::Move> moves) { moved(moves); });
  const std::size_t row_bytes = memory_.layout().saved_row_bytes();
  std::vector<std::byte> saved(places.size() * record_bytes());
  std::vector<std::uint64_t> keys;
  std::vector<storage::Place> records(places.size());
  if (!saves_age()) memory_.save(places, saved.data());
  for (std::size_t i = 0; i < places.size(); ++i) {
    keys.push_back(static_cast<std::uint64_t>(memory_.row_at(places[i])));
    if (!saves_age()) continue;
    std::byte* const record = saved.data() + i * record_bytes();
    memory_.save({&places[i], 1}, record);
    const std::uint32_t updated = turnover_->updated(places[i]);
    std::memcpy(record + row_bytes, &updated, sizeof updated);
  }
  store_->append(keys, saved, records);
  for (std::size_t i = 0; i < records.size(); ++i) index_.add(hash_at(places[i]), records[i]);
}

std::uint32_t TableTier::age_in(const std::byte* record) const {
  std::uint32_t updated = 0;
  std::memcpy(&updated, record + memory_.layout().saved_row_bytes(), sizeof updated);
  return updated;
}

// ---- rows go for good ----

void TableTier::drop(std::span<const std::int64_t> places) {
  change(places);
  for (const std::int64_t place : places) {
    set_dirty(place, false);
    if (lfu_ != nullptr && lfu_->holds(static_cast<TinyLfu::Slot>(place)))
      lfu_->remove(static_cast<TinyLfu::Slot>(place));
    if (!not_there_.empty()) not_there_.erase(memory_.row_at(place));
  }
}

void TableTier::sweep(Gone gone) {
  if (!saves_age() || store_ == nullptr || sweep_.under_way || rows_elsewhere() == 0) return;
  const std::size_t most = turnover_->to_look_at(static_cast<std::int64_t>(rows_elsewhere()));
  if (most == 0) return;
  // Behind the last ones, and round to the first.
  std::vector<storage::Place> places = store_->live_places(sweep_.next, most);
  for (const storage::Place place : store_->live_places(0, most - places.size()))
    if (place < sweep_.next) places.push_back(place);
  if (places.empty()) return;
  sweep_.next = places.back() + 1;
  sweep_.under_way = true;
  ++fetching_;
  store_->read(places, [this, places, gone = std::move(gone),
                        alive = std::weak_ptr<const bool>(alive_)](const storage::ReadRows& read) {
    if (alive.expired()) return;
    sweep_.under_way = false;
    swept(places, read, gone);
    if (--fetching_ == 0) moves_.clear();
  });
}

// Rows that are in memory by now are looked at there.
void TableTier::swept(const std::vector<storage::Place>& places, const storage::ReadRows& read,
                      const Gone& gone) {
  if (read.error != nullptr) {
    if (!std::exchange(sweep_.failed, true))
      log_warning("'", name_, "': rows on the disk could not be looked at, and stay even where ",
                  "they are to go for good: ", error_parts(read.error).message);
    return;
  }
  std::vector<std::int64_t> rows;
  for (const std::uint64_t key : read.keys) rows.push_back(static_cast<std::int64_t>(key));
  std::vector<std::size_t> looked;
  std::vector<RowTurnover::Elsewhere> elsewhere;
  for (const std::size_t i : memory_.find(rows).absent) {
    const std::byte* const record = read.rows.data() + i * record_bytes();
    if (where_now(hash_of_row(rows[i]), places[i]) == kNone) continue;
    looked.push_back(i);
    elsewhere.push_back({age_in(record), record});
  }
  std::vector<std::int64_t> went;
  std::vector<storage::Place> released;
  for (const std::size_t chosen :
       turnover_->choose(elsewhere, static_cast<std::int64_t>(rows_elsewhere()))) {
    const std::size_t i = looked[chosen];
    const storage::Place place = where_now(hash_of_row(rows[i]), places[i]);
    index_.remove(hash_of_row(rows[i]), place);
    released.push_back(place);
    went.push_back(rows[i]);
  }
  if (went.empty()) return;
  store_->release(released);
  gone(went);
}

void TableTier::moved(std::span<const storage::Move> moves) {
  std::vector<std::int64_t> rows;
  for (const storage::Move& move : moves) {
    index_.move(mix_bits(move.key), move.from, move.to);
    if (fetching_ > 0) moves_[move.from] = move.to;
    rows.push_back(static_cast<std::int64_t>(move.key));
  }
  const Places found = memory_.find(rows);
  for (std::size_t i = 0, absent = 0; i < moves.size(); ++i) {
    if (absent < found.absent.size() && found.absent[absent] == i) {
      ++absent;
      continue;
    }
    storage::Place& record = records_[static_cast<std::size_t>(found.at[i])];
    if (record == moves[i].from) record = moves[i].to;
  }
}

}  // namespace cairn::ps
