#include "ps/tier/table_tier.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn::ps {
namespace {

// Uses are counted, and rows leave, from where so much of the budget is taken.
constexpr double kShort = 0.9;
constexpr std::size_t kUsesAhead = 12;  // whose memory is asked for

std::uint64_t hash_of(std::int64_t row) { return mix_bits(static_cast<std::uint64_t>(row)); }

bool earlier(TableTier::Moment one, TableTier::Moment other) {
  return static_cast<std::int32_t>(one - other) < 0;
}

}  // namespace

TableTier::TableTier(RowMemory& memory, const Shared& shared, std::string name)
    : memory_(memory), shared_(shared), name_(std::move(name)), share_(shared.budget->join()) {}

TableTier::~TableTier() { shared_.budget->leave(share_); }

std::uint64_t TableTier::hash_at(std::int64_t place) const {
  return hash_of(memory_.row_at(place));
}

// ---- which rows are where ----

void TableTier::find_elsewhere(std::span<const std::int64_t> rows, bool counts,
                               std::vector<std::int64_t>& elsewhere) {
  if (all_here()) return;
  const Places found = memory_.find(rows);
  fit();
  look_for(rows, found.absent, elsewhere);
  const Moment now = *shared_.now;
  std::size_t absent = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (const std::size_t next = i + kUsesAhead; next < rows.size() && memory_.held() > 0) {
      __builtin_prefetch(&used_[static_cast<std::size_t>(found.at[next])], 1);
      if (counts) lfu_->prefetch(static_cast<TinyLfu::Slot>(found.at[next]), hash_of(rows[next]));
    }
    if (absent < found.absent.size() && found.absent[absent] == i) {
      ++absent;
      continue;
    }
    Moment& used = used_[static_cast<std::size_t>(found.at[i])];
    // Once for each request, however often it is asked.
    if (counts && used != now) lfu_->use(static_cast<TinyLfu::Slot>(found.at[i]), hash_of(rows[i]));
    used = now;
  }
}

// Those of `rows` that have these indices are not in memory.
void TableTier::look_for(std::span<const std::int64_t> rows, std::span<const std::size_t> absent,
                         std::vector<std::int64_t>& elsewhere) const {
  for (std::size_t i = 0; i < absent.size(); ++i) {
    if (i + kUsesAhead < absent.size()) index_.prefetch(hash_of(rows[absent[i + kUsesAhead]]));
    bool may_be = false;
    index_.find(hash_of(rows[absent[i]]), [&](ColdIndex::Place) { may_be = true; });
    if (may_be) elsewhere.push_back(rows[absent[i]]);
  }
}

// ---- rows come ----

void TableTier::fetch(const std::vector<std::int64_t>& rows, std::function<void(Fetched)> done) {
  struct Asked {
    std::vector<std::int64_t> rows;
    std::vector<storage::Place> places;
    std::vector<std::size_t> ends;  // by row: of its places
    std::function<void(Fetched)> done;
  };
  auto asked = std::make_shared<Asked>();
  asked->rows = rows;
  asked->done = std::move(done);
  for (const std::int64_t row : rows) {
    index_.find(hash_of(row), [&](ColdIndex::Place place) { asked->places.push_back(place); });
    asked->ends.push_back(asked->places.size());
  }
  ++fetching_;
  store_->read(asked->places, [this, asked, alive = std::weak_ptr<const bool>(alive_)](
                                  const storage::ReadRows& read) {
    if (alive.expired()) return;
    Fetched fetched;
    fetched.error = read.error;
    const std::size_t row_bytes = memory_.layout().saved_row_bytes();
    for (std::size_t i = 0, at = 0; i < asked->rows.size() && read.error == nullptr; ++i) {
      const std::int64_t row = asked->rows[i];
      while (at < asked->ends[i] && read.keys[at] != static_cast<std::uint64_t>(row)) ++at;
      if (at < asked->ends[i]) {
        fetched.rows.push_back(row);
        fetched.records.push_back(where_now(hash_of(row), asked->places[at]));
        const auto saved = read.rows.begin() + static_cast<std::ptrdiff_t>(at * row_bytes);
        fetched.saved.insert(fetched.saved.end(), saved,
                             saved + static_cast<std::ptrdiff_t>(row_bytes));
      } else {
        fetched.initial.push_back(row);
      }
      at = asked->ends[i];
    }
    if (--fetching_ == 0) moves_.clear();
    shared_.counters->fetched += fetched.rows.size();
    asked->done(std::move(fetched));
  });
}

// Where the record lies that lay at `place` when it was asked for.
storage::Place TableTier::where_now(std::uint64_t hash, storage::Place place) const {
  const auto lies_at = [&](storage::Place wanted) {
    bool lies = false;
    index_.find(hash, [&](ColdIndex::Place at) { lies = lies || at == wanted; });
    return lies;
  };
  while (!lies_at(place)) {
    const auto moved = moves_.find(place);
    CAIRN_CHECK(moved != moves_.end(), "'", name_, "': the record at ", place, " has gone");
    place = moved->second;
  }
  return place;
}

void TableTier::came(const Fetched& fetched) {
  const Moment now = *shared_.now;
  fit();
  const Places places = memory_.find(fetched.rows);
  for (std::size_t i = 0; i < places.at.size(); ++i) {
    const std::int64_t place = places.at[i];
    enter(place);
    set_dirty(place, false);
    records_[static_cast<std::size_t>(place)] = fetched.records[i];
    used_[static_cast<std::size_t>(place)] = now;
  }
  clean_ += fetched.rows.size();
  for (const std::int64_t place : memory_.find(fetched.initial).at) {
    enter(place);
    set_dirty(place, false);
    used_[static_cast<std::size_t>(place)] = now;
  }
}

void TableTier::fit() {
  const auto places = static_cast<std::size_t>(memory_.held());
  if (places <= records_.size()) return;
  records_.resize(places, kNone);
  used_.resize(places, 0);
  dirty_.resize((places + 63) / 64, 0);
}

// Notes that the place has a row, if it is new to the books.
void TableTier::enter(std::int64_t place) {
  if (lfu_ != nullptr && !lfu_->holds(static_cast<TinyLfu::Slot>(place)))
    lfu_->enter(static_cast<TinyLfu::Slot>(place), hash_at(place));
}

void TableTier::set_dirty(std::int64_t place, bool is) {
  std::uint64_t& word = dirty_[static_cast<std::size_t>(place) >> 6];
  const std::uint64_t bit = std::uint64_t{1} << (place & 63);
  word = is ? word | bit : word & ~bit;
}

// ---- rows change ----

void TableTier::change(std::span<const std::int64_t> places) {
  fit();
  std::vector<storage::Place> released;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (const std::size_t next = i + kUsesAhead; next < places.size()) {
      const auto ahead = static_cast<std::size_t>(places[next]);
      __builtin_prefetch(&records_[ahead], 1);
      __builtin_prefetch(&dirty_[ahead >> 6], 1);
    }
    const std::int64_t place = places[i];
    if (dirty(place)) continue;
    enter(place);
    set_dirty(place, true);
    used_[static_cast<std::size_t>(place)] = *shared_.now;
    storage::Place& record = records_[static_cast<std::size_t>(place)];
    if (record == kNone) continue;
    index_.remove(hash_at(place), record);
    released.push_back(std::exchange(record, kNone));
  }
  if (released.empty()) return;
  clean_ -= released.size();
  store_->release(released);
}

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

bool TableTier::compact(std::int64_t most) {
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
  const std::size_t row_bytes = memory_.layout().saved_row_bytes();
  if (!rows.dirty.empty()) {
    if (store_ == nullptr)
      store_ = shared_.make_store(name_, row_bytes,
                                  [this](std::span<const storage::Move> moves) { moved(moves); });
    std::vector<std::byte> saved(rows.dirty.size() * row_bytes);
    std::vector<std::uint64_t> keys;
    std::vector<storage::Place> records(rows.dirty.size());
    memory_.save(rows.dirty, saved.data());
    for (const std::int64_t place : rows.dirty)
      keys.push_back(static_cast<std::uint64_t>(memory_.row_at(place)));
    store_->append(keys, saved, records);
    for (std::size_t i = 0; i < records.size(); ++i) index_.add(hash_at(rows.dirty[i]), records[i]);
  }
  for (const std::int64_t place : rows.places) {
    storage::Place& record = records_[static_cast<std::size_t>(place)];
    if (std::exchange(record, kNone) != kNone) --clean_;
    set_dirty(place, false);
    memory_.let_go(place);
  }
  shared_.counters->evicted += rows.places.size();
  shared_.counters->written += rows.dirty.size();
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

// ---- a checkpoint ----

std::vector<std::uint64_t> TableTier::dirty_places() const {
  std::vector<std::uint64_t> words = dirty_;
  words.resize((static_cast<std::size_t>(memory_.held()) + 63) / 64, 0);
  return words;
}

std::unique_ptr<storage::ColdCut> TableTier::freeze() {
  return store_ == nullptr ? nullptr : store_->freeze();
}

// Reads that are under way are of no use to anybody.
void TableTier::reset() {
  alive_ = std::make_shared<const bool>(true);
  index_.clear();
  store_.reset();
  lfu_.reset();
  dirty_.clear();
  records_.clear();
  used_.clear();
  moves_.clear();
  fetching_ = 0;
  clean_ = 0;
  tell_bytes();
}

std::size_t TableTier::bytes() const {
  return memory_.bytes() + dirty_.capacity() * sizeof(std::uint64_t) +
         records_.capacity() * sizeof(storage::Place) + used_.capacity() * sizeof(Moment) +
         (lfu_ == nullptr ? 0 : lfu_->bytes()) + (index_.size() == 0 ? 0 : index_.bytes()) +
         static_cast<std::size_t>(store_use().memory_bytes);
}

}  // namespace cairn::ps
