#include "core/kernels/cuda/rows/cached_rows.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/rows/row_cache.h"
#include "core/kernels/cuda/runtime/staging.h"

namespace cairn::cuda {
namespace {

// Host memory that is pinned where it lies.
class Pinned {
 public:
  Pinned(Driver& driver, const RowBlock& block)
      : driver_(driver), begin_(block.base), bytes_(bytes_of(block)) {
    driver_.pin(begin_, bytes_);
  }
  ~Pinned() { driver_.unpin(begin_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t bytes_of(const RowBlock& block) {
    return static_cast<std::size_t>(block.rows * block.row_stride) * dtype_bytes(block.dtype);
  }

  Driver& driver_;
  std::byte* const begin_;
  const std::size_t bytes_;
};

// Without slots their place says nothing, and may be behind all rows.
RowBlock beside(RowBlock home) {
  if (home.slot_offset >= home.row_stride) home.slot_offset = 0;
  return home;
}

template <typename Id>
bool all_within(const Tensor& ids, std::int64_t rows) {
  bool within = true;
  for (const Id id : ids.values<Id>()) within &= id >= 0 && static_cast<std::int64_t>(id) < rows;
  return within;
}

bool all_within(const Tensor& ids, std::int64_t rows) {
  return ids.dtype() == DType::kInt32 ? all_within<std::int32_t>(ids, rows)
                                      : all_within<std::int64_t>(ids, rows);
}

class CudaCachedRows final : public CachedRows {
 public:
  CudaCachedRows(Queue& queue, const RowBlock& home, RowKernels::CacheOptions options)
      : queue_(queue),
        home_(beside(home)),
        options_(std::move(options)),
        pinned_(queue.driver(), home_),
        first_lookup_(queue.memory(2 * sizeof(std::int64_t), Use::kCache)) {
    verify_size(1);
    const std::int64_t all[] = {0, std::numeric_limits<std::int64_t>::max()};
    queue_.copy_in(first_lookup_->data(), reinterpret_cast<const std::byte*>(all), sizeof all);
    ready_ = queue.driver().make_event();
  }
  ~CudaCachedRows() override {
    cache_.reset();
    queue_.driver().destroy(ready_);
  }

  const std::byte* find(const TensorType& ids, const std::byte* at, Access access) override {
    while (!prepared_.empty()) use_next();
    release();
    make_room(ids.shape.elements());
    // The ids are made by the queue, and the cache reads them on a stream of its own.
    Driver& driver = queue_.driver();
    driver.record(ready_, queue_.stream());
    driver.wait_for(cache_->stream(), ready_);
    prepare(ids.dtype, at, ids.shape.elements(), access);
    prepared_.emplace_back();
    return use_next();
  }

  bool prepare(std::span<const Tensor> ids, Access access) override {
    if (room() == 0) return false;
    std::int64_t count = 0;
    for (const Tensor& one : ids) {
      count += one.elements();
      if (one.dtype() != ids[0].dtype() || !all_within(one, home_.rows)) return false;
    }
    if (count > lookups_max_) return false;
    // The stream reads them before it gets those of the next batch.
    std::byte* to = ids_->data();
    for (const Tensor& one : ids) {
      staging_->send(cache_->stream(), to, one.raw(), one.bytes());
      to += one.bytes();
    }
    prepare(ids[0].dtype(), ids_->data(), count, access);
    prepared_.emplace_back(ids.begin(), ids.end());
    return true;
  }
  int prepared() const override { return static_cast<int>(prepared_.size()); }
  int room() const override { return cache_ ? lookahead_ - prepared() : 0; }
  const std::byte* use(std::span<const Tensor> ids) override {
    const auto same = [](const Tensor& a, const Tensor& b) {
      return a.raw() == b.raw() && a.type() == b.type();
    };
    if (prepared_.empty() || !std::ranges::equal(prepared_.front(), ids, same)) return nullptr;
    return use_next();
  }

  RowBlock block() const override { return cache_ ? cache_->block() : RowBlock{}; }
  void flush() override {
    if (cache_) cache_->flush();
  }
  std::size_t bytes() const override { return cache_ ? options_.bytes : 0; }

 private:
  // Bytes on the device: of each row of the table, wherever it lies, and of each place, besides the
  // row in it; see row_cache.h.
  static constexpr std::int64_t kBytesPerRow = 4, kBytesPerPlace = 16;
  // The bytes that a lookup of a batch takes: besides what the cache has for it, a candidate for a
  // victim in each of `lookahead` + 4 batches, and a copy of its id.
  static std::int64_t bytes_per_lookup(int lookahead) {
    return 80 + 4 * (lookahead + 1) + 50 * (lookahead + 4) + 8;
  }

  std::int64_t row_bytes() const {
    return home_.row_stride * static_cast<std::int64_t>(dtype_bytes(home_.dtype));
  }
  std::int64_t places_for(std::int64_t lookups, int lookahead) const {
    const std::int64_t left = static_cast<std::int64_t>(options_.bytes) -
                              kBytesPerRow * home_.rows - bytes_per_lookup(lookahead) * lookups;
    return std::min(left / (row_bytes() + kBytesPerPlace), home_.rows);
  }
  void verify_size(std::int64_t lookups) const {
    if (places_for(lookups, 0) >= 1) return;
    const std::int64_t least = kBytesPerRow * home_.rows + bytes_per_lookup(0) * lookups;
    throw ResourceExhaustedError(
        str("the table \"", options_.name, "\" may take ", bytes_text(options_.bytes),
            " of the GPU's memory for a cache, and ", bytes_text(static_cast<std::size_t>(least)),
            " go into numbers of its ", home_.rows, " rows and of a batch's ", lookups,
            " lookups alone: give tables more (device_cache), or run smaller batches"));
  }

  // As many batches ahead as always find room.
  void choose_size() {
    const auto fits = [&](int lookahead) {
      return places_for(lookups_max_, lookahead) >= lookups_max_ * (lookahead + 1);
    };
    lookahead_ = options_.lookahead;
    while (lookahead_ > 0 && !fits(lookahead_)) --lookahead_;
    verify_size(lookups_max_);
    places_ = places_for(lookups_max_, lookahead_);
  }
  // Batches are mostly of one size. A larger one makes the cache anew, and empty.
  void make_room(std::int64_t count) {
    if (cache_ && count <= lookups_max_) return;
    const bool grows = cache_.has_value();
    if (grows) cache_->flush();
    cache_.reset();
    staging_ = std::make_unique<Staging>(queue_.driver());
    lookups_max_ = std::max<std::int64_t>({count, 1, grows ? lookups_max_ + lookups_max_ / 2 : 0});
    choose_size();
    RowCacheOptions options;
    options.places = places_;
    options.lookups_max = lookups_max_;
    options.lookahead = lookahead_;
    options.table = options_.name;
    ids_ =
        queue_.memory(static_cast<std::size_t>(lookups_max_) * sizeof(std::int64_t), Use::kCache);
    told_ = {};
    cache_.emplace(queue_, home_, std::vector<std::int64_t>{0, home_.rows}, options);
  }

  void prepare(DType dtype, const std::byte* ids, std::int64_t count, Access access) {
    cache_->prepare(
        {ids, dtype == DType::kInt32 ? IdType::kInt32 : IdType::kInt64,
         first_lookup_->as<std::int64_t>(), count},
        access == Access::kChanges ? RowCache::Access::kChanges : RowCache::Access::kReads);
    const RowCache::Counts now = cache_->counts_lately();
    Driver::CachedLookups& sums = queue_.driver().cached_lookups();
    sums.found += now.found - told_.found;
    sums.read += now.read - told_.read;
    told_ = now;
  }
  const std::byte* use_next() {
    release();
    const std::int32_t* const places = cache_->use();
    in_use_ = true;
    prepared_.pop_front();
    return reinterpret_cast<const std::byte*>(places);
  }
  void release() {
    if (in_use_) cache_->release();
    in_use_ = false;
  }

  Queue& queue_;
  const RowBlock home_;
  const RowKernels::CacheOptions options_;
  const Pinned pinned_;
  std::shared_ptr<Memory> first_lookup_;  // of one table: [2]
  std::shared_ptr<Memory> ids_;           // of the batch that was prepared last
  std::unique_ptr<Staging> staging_;      // on their way there, over the stream of the cache
  Event ready_ = nullptr;
  std::int64_t places_ = 0, lookups_max_ = 0;
  int lookahead_ = 0;
  std::deque<std::vector<Tensor>>
      prepared_;  // their ids; held, so that no other tensor takes their address
  bool in_use_ = false;
  RowCache::Counts told_;
  std::optional<RowCache> cache_;
};

}  // namespace

std::unique_ptr<CachedRows> make_cached_rows(Queue& queue, const RowBlock& home,
                                             const RowKernels::CacheOptions& options) {
  return std::make_unique<CudaCachedRows>(queue, home, options);
}

}  // namespace cairn::cuda
