#include "ps/tier/table_tier.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "ps/tier/tier_cut.h"

namespace cairn::ps {
namespace {

constexpr std::size_t kUsesAhead = 12;  // whose memory is asked for

}  // namespace

TableTier::TableTier(RowMemory& memory, const Shared& shared, std::string name,
                     RowTurnover* turnover)
    : memory_(memory),
      shared_(shared),
      name_(std::move(name)),
      turnover_(turnover),
      share_(shared.budget->join()) {}

TableTier::~TableTier() { shared_.budget->leave(share_); }

std::uint64_t TableTier::hash_at(std::int64_t place) const {
  return hash_of_row(memory_.row_at(place));
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
      if (counts)
        lfu_->prefetch(static_cast<TinyLfu::Slot>(found.at[next]), hash_of_row(rows[next]));
    }
    if (absent < found.absent.size() && found.absent[absent] == i) {
      ++absent;
      continue;
    }
    Moment& used = used_[static_cast<std::size_t>(found.at[i])];
    // Once for each request, however often it is asked.
    if (counts && used != now)
      lfu_->use(static_cast<TinyLfu::Slot>(found.at[i]), hash_of_row(rows[i]));
    used = now;
  }
}

// Those of `rows` that have these indices are not in memory.
void TableTier::look_for(std::span<const std::int64_t> rows, std::span<const std::size_t> absent,
                         std::vector<std::int64_t>& elsewhere) const {
  for (std::size_t i = 0; i < absent.size(); ++i) {
    if (i + kUsesAhead < absent.size()) index_.prefetch(hash_of_row(rows[absent[i + kUsesAhead]]));
    const std::int64_t row = rows[absent[i]];
    bool may_be = false;
    index_.find(hash_of_row(row), [&](ColdIndex::Place) { may_be = true; });
    if (may_be && !not_there_.contains(row)) elsewhere.push_back(row);
  }
}

bool TableTier::may_be_elsewhere(std::int64_t row) const {
  bool may_be = false;
  if (!all_here()) index_.find(hash_of_row(row), [&](ColdIndex::Place) { may_be = true; });
  return may_be;
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
    index_.find(hash_of_row(row), [&](ColdIndex::Place place) { asked->places.push_back(place); });
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
      // It may have gone for good meanwhile.
      const storage::Place record =
          at < asked->ends[i] ? where_now(hash_of_row(row), asked->places[at]) : kNone;
      if (record != kNone) {
        fetched.rows.push_back(row);
        fetched.records.push_back(record);
        const std::byte* const saved = read.rows.data() + at * record_bytes();
        fetched.saved.insert(fetched.saved.end(), saved, saved + row_bytes);
        if (saves_age()) fetched.updated.push_back(age_in(saved));
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

storage::Place TableTier::where_now(std::uint64_t hash, storage::Place place) const {
  const auto lies_at = [&](storage::Place wanted) {
    bool lies = false;
    index_.find(hash, [&](ColdIndex::Place at) { lies = lies || at == wanted; });
    return lies;
  };
  while (!lies_at(place)) {
    const auto moved = moves_.find(place);
    if (moved == moves_.end()) return kNone;
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
  if (saves_age()) turnover_->came(places.at, fetched.updated);
  for (const std::int64_t row : fetched.initial) not_there_[row] = now;
}

void TableTier::forget_looks(Moment before) {
  std::erase_if(not_there_, [before](const auto& one) { return earlier(one.second, before); });
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

// ---- a checkpoint ----

std::vector<std::uint64_t> TableTier::dirty_places() const {
  std::vector<std::uint64_t> words = dirty_;
  words.resize((static_cast<std::size_t>(memory_.held()) + 63) / 64, 0);
  return words;
}

std::vector<std::uint64_t> TableTier::updated_places() const {
  std::vector<std::uint64_t> words = dirty_places();
  for (std::size_t place = 0; place < records_.size() && place / 64 < words.size(); ++place)
    if (records_[place] != kNone) words[place / 64] |= std::uint64_t{1} << (place % 64);
  return words;
}

std::unique_ptr<storage::ColdCut> TableTier::freeze() {
  if (store_ == nullptr) return nullptr;
  return std::make_unique<TierCut>(store_->freeze(), memory_.layout().saved_row_bytes(),
                                   record_bytes());
}

std::unique_ptr<storage::ColdCut> TableTier::freeze(std::vector<std::int64_t> rows) {
  std::vector<storage::Place> places;
  for (const std::int64_t row : rows)
    index_.find(hash_of_row(row), [&](ColdIndex::Place place) { places.push_back(place); });
  if (places.empty()) return nullptr;
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return std::make_unique<TierCut>(store_->freeze(std::move(places)),
                                   memory_.layout().saved_row_bytes(), record_bytes(),
                                   std::move(rows));
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
  not_there_.clear();
  fetching_ = 0;
  sweep_ = {};
  clean_ = 0;
  tell_bytes();
}

std::size_t TableTier::bytes() const {
  return memory_.bytes() + dirty_.capacity() * sizeof(std::uint64_t) +
         records_.capacity() * sizeof(storage::Place) + used_.capacity() * sizeof(Moment) +
         beside_ + (lfu_ == nullptr ? 0 : lfu_->bytes()) +
         (index_.size() == 0 ? 0 : index_.bytes()) +
         static_cast<std::size_t>(store_use().memory_bytes);
}

}  // namespace cairn::ps
