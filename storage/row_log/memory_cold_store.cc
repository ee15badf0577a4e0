#include "storage/row_log/memory_cold_store.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"

namespace cairn::storage {

class MemoryColdStore::Cut final : public ColdCut {
 public:
  Cut(std::vector<std::shared_ptr<const Record>> records,
      std::function<void(std::function<void()>)> later)
      : records_(std::move(records)), later_(std::move(later)) {}
  std::uint64_t rows() const override { return records_.size(); }
  void next(std::size_t most, RowsDone done) override {
    ReadRows read;
    const std::size_t end = std::min(records_.size(), next_ + most);
    for (; next_ < end; ++next_) {
      read.keys.push_back(records_[next_]->key);
      std::ranges::copy(records_[next_]->row, std::back_inserter(read.rows));
    }
    later_([read, done = std::move(done)] { done(read); });
  }

 private:
  std::vector<std::shared_ptr<const Record>> records_;
  std::function<void(std::function<void()>)> later_;
  std::size_t next_ = 0;
};

MemoryColdStore::MemoryColdStore(MemoryColdStoreOptions options, Moved moved)
    : options_(std::move(options)), moved_(std::move(moved)) {}

void MemoryColdStore::append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
                             std::span<Place> places) {
  if (keys.size() > options_.room)
    throw UnavailableError(str("the store takes ", options_.room, " rows, not ", keys.size()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = rows.subspan(i * options_.row_bytes, options_.row_bytes);
    places[i] = next_;
    records_[next_++] = std::make_shared<const Record>(Record{keys[i], {row.begin(), row.end()}});
  }
}

void MemoryColdStore::release(std::span<const Place> places) {
  for (const Place place : places) {
    CAIRN_CHECK(records_.erase(place) == 1, "no row lies at place ", place);
    ++released_;
  }
  if (options_.moves_after == 0 || released_ < options_.moves_after) return;
  released_ = 0;
  options_.later([this, alive = std::weak_ptr<const bool>(alive_)] {
    if (!alive.expired()) move_one();
  });
}

void MemoryColdStore::move_one() {
  if (records_.empty()) return;
  const auto first = records_.extract(records_.begin());
  const Move move{first.mapped()->key, first.key(), next_};
  records_[next_++] = first.mapped();
  moved_({&move, 1});
}

void MemoryColdStore::read(std::span<const Place> places, RowsDone done) {
  ReadRows read;
  for (const Place place : places) {
    const auto found = records_.find(place);
    CAIRN_CHECK(found != records_.end(), "no row lies at place ", place);
    read.keys.push_back(found->second->key);
    std::ranges::copy(found->second->row, std::back_inserter(read.rows));
  }
  options_.later([read, done = std::move(done)] { done(read); });
}

std::unique_ptr<ColdCut> MemoryColdStore::freeze() {
  std::vector<std::shared_ptr<const Record>> records;
  for (const auto& [place, record] : records_) records.push_back(record);
  return std::make_unique<Cut>(std::move(records), options_.later);
}

std::unique_ptr<ColdCut> MemoryColdStore::freeze(std::vector<Place> places) {
  std::vector<std::shared_ptr<const Record>> records;
  for (const Place place : places) records.push_back(records_.at(place));
  return std::make_unique<Cut>(std::move(records), options_.later);
}

std::vector<Place> MemoryColdStore::live_places(Place first, std::size_t most) const {
  std::vector<Place> places;
  for (auto at = records_.lower_bound(first); at != records_.end() && places.size() < most; ++at)
    places.push_back(at->first);
  return places;
}

ColdUse MemoryColdStore::use() const {
  return {records_.size(), records_.size() * options_.row_bytes, 0};
}

}  // namespace cairn::storage
