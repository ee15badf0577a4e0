#include "ps/snapshot/row_order.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

constexpr std::int64_t kPlacesABucket = 4096;
constexpr std::int64_t kBucketsMax = 1 << 16;

}  // namespace

void RowOrder::begin(std::int64_t count, std::int64_t greatest,
                     const std::vector<std::uint64_t>* only) {
  CAIRN_CHECK(count <= UINT32_MAX, count, " places");
  clear();
  if (count == 0) return;
  const auto buckets =
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(count / kPlacesABucket, 1, kBucketsMax));
  const auto bits = [](std::uint64_t of) { return static_cast<int>(std::bit_width(of)); };
  shift_ = std::max(0, bits(static_cast<std::uint64_t>(greatest)) - (bits(buckets) - 1));
  ends_.resize(bucket_of(greatest) + 1);
  count_ = count;
  only_ = only;
  stage_ = Stage::kCount;
}

void RowOrder::clear() {
  stage_ = Stage::kPrepared;
  count_ = size_ = at_ = sorted_places_ = 0;
  sorted_buckets_ = 0;
  places_.reset();
  ends_.clear();
  bucket_ = {};
}

void RowOrder::prepare(std::span<const std::int64_t> rows, std::int64_t places) {
  if (prepared()) return;
  const std::int64_t end = std::min(count_, at_ + places);
  for (; at_ < end; ++at_) {
    if (only_ != nullptr && ((*only_)[static_cast<std::size_t>(at_) >> 6] >> (at_ & 63) & 1) == 0)
      continue;
    std::uint32_t& bucket = ends_[bucket_of(rows[static_cast<std::size_t>(at_)])];
    if (stage_ == Stage::kPlace) places_[bucket] = static_cast<std::uint32_t>(at_);
    ++bucket;
  }
  if (at_ < count_) return;
  at_ = 0;
  if (stage_ == Stage::kPlace) {
    stage_ = Stage::kPrepared;
    return;
  }
  std::uint32_t before = 0;
  for (std::uint32_t& bucket : ends_) before += std::exchange(bucket, before);
  size_ = before;
  // Not cleared: every place is about to be written.
  places_ = std::make_unique_for_overwrite<std::uint32_t[]>(before);
  stage_ = Stage::kPlace;
}

std::span<const std::uint32_t> RowOrder::sorted(std::span<const std::int64_t> rows,
                                                std::int64_t begin, std::int64_t end) {
  while (!prepared()) prepare(rows, count_);
  while (sorted_places_ < end) sort_next_bucket(rows);
  return {places_.get() + begin, static_cast<std::size_t>(end - begin)};
}

void RowOrder::sort_next_bucket(std::span<const std::int64_t> rows) {
  const auto begin = static_cast<std::size_t>(sorted_places_);
  const std::size_t end = ends_[sorted_buckets_++];
  bucket_.clear();
  for (std::size_t i = begin; i < end; ++i) bucket_.emplace_back(rows[places_[i]], places_[i]);
  std::sort(bucket_.begin(), bucket_.end());
  for (std::size_t i = begin; i < end; ++i) places_[i] = bucket_[i - begin].second;
  sorted_places_ = static_cast<std::int64_t>(end);
}

}  // namespace cairn::ps
