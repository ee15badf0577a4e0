#include "core/kernels/cuda/cached_rows.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/kernels/cuda/row_cache.h"

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

class CudaCachedRows final : public CachedRows {
 public:
  CudaCachedRows(Queue& queue, const RowBlock& home, std::size_t bytes, std::string name)
      : queue_(queue),
        home_(beside(home)),
        bytes_(bytes),
        name_(std::move(name)),
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
    const std::int64_t count = ids.shape.elements();
    if (cache_ && in_use_) cache_->release();
    in_use_ = false;
    make_room(count);
    // The ids are made by the queue, and the cache reads them on a stream of its own.
    Driver& driver = queue_.driver();
    driver.record(ready_, queue_.stream());
    driver.wait_for(cache_->stream(), ready_);
    cache_->prepare(
        {at, ids.dtype == DType::kInt32 ? IdType::kInt32 : IdType::kInt64,
         first_lookup_->as<std::int64_t>(), count},
        access == Access::kChanges ? RowCache::Access::kChanges : RowCache::Access::kReads);
    const std::int32_t* const places = cache_->use();
    in_use_ = true;
    return reinterpret_cast<const std::byte*>(places);
  }
  RowBlock block() const override { return cache_ ? cache_->block() : RowBlock{}; }
  void flush() override {
    if (cache_) cache_->flush();
  }
  std::size_t bytes() const override { return cache_ ? bytes_ : 0; }

 private:
  // What a row of the table and a lookup of a batch take on the device, wherever they lie
  // (row_cache.h): a window of candidates for victims is four batches of lookups wide.
  static constexpr std::int64_t kBytesPerRow = 4, kBytesPerLookup = 84 + 4 * 50,
                                kBytesPerPlace = 16;

  std::int64_t row_bytes() const {
    return home_.row_stride * static_cast<std::int64_t>(dtype_bytes(home_.dtype));
  }
  std::int64_t places_for(std::int64_t lookups) const {
    const std::int64_t left =
        static_cast<std::int64_t>(bytes_) - kBytesPerRow * home_.rows - kBytesPerLookup * lookups;
    return std::min(left / (row_bytes() + kBytesPerPlace), home_.rows);
  }
  void verify_size(std::int64_t lookups) const {
    if (places_for(lookups) >= 1) return;
    const std::int64_t least = kBytesPerRow * home_.rows + kBytesPerLookup * lookups;
    throw ResourceExhaustedError(
        str("the table \"", name_, "\" may take ", bytes_text(bytes_),
            " of the GPU's memory for a cache, and ", bytes_text(static_cast<std::size_t>(least)),
            " go into numbers of its ", home_.rows, " rows and of a batch's ", lookups,
            " lookups alone: give tables more (device_cache), or run smaller batches"));
  }

  // Batches are mostly of one size. A larger one makes the cache anew, and empty.
  void make_room(std::int64_t count) {
    if (cache_ && count <= lookups_max_) return;
    if (cache_) cache_->flush();
    const bool grows = cache_.has_value();
    cache_.reset();
    lookups_max_ = std::max<std::int64_t>({count, 1, grows ? lookups_max_ + lookups_max_ / 2 : 0});
    if (places_ == 0) {
      verify_size(lookups_max_);
      places_ = places_for(lookups_max_);
    }
    RowCacheOptions options;
    options.places = places_;
    options.lookups_max = lookups_max_;
    options.lookahead = 0;
    options.table = name_;
    cache_.emplace(queue_, home_, std::vector<std::int64_t>{0, home_.rows}, options);
  }

  Queue& queue_;
  const RowBlock home_;
  const std::size_t bytes_;
  const std::string name_;
  const Pinned pinned_;
  std::shared_ptr<Memory> first_lookup_;  // of one table: [2]
  Event ready_ = nullptr;
  std::int64_t places_ = 0, lookups_max_ = 0;
  bool in_use_ = false;
  std::optional<RowCache> cache_;
};

}  // namespace

std::unique_ptr<CachedRows> make_cached_rows(Queue& queue, const RowBlock& home, std::size_t bytes,
                                             const std::string& name) {
  return std::make_unique<CudaCachedRows>(queue, home, bytes, name);
}

}  // namespace cairn::cuda
