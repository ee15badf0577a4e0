// Staleness: how stale the updates of a run were, as a histogram of power-of-two buckets. An
// update's staleness is the number of other updates that a shard applied between the closure's pull
// and its push. It is the price of asynchrony: gradients are computed from rows that others have
// changed since.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

// Bucket 0 holds updates of staleness 0, and bucket i those of [2^(i-1), 2^i). With powers of two
// small numbers stay distinct while very late updates, however rare, are counted in the same few
// buckets: 65 of them hold every 64-bit number.  Thread: one.
class StalenessHistogram {
 public:
  // One bucket as it is shown.
  struct Bucket {
    // Both ends belong to the bucket.
    std::uint64_t from = 0, to = 0;  // both inclusive
    std::uint64_t updates = 0;
  };

  // Called for each update that is committed: a few additions, and no allocation.
  void add(std::uint64_t staleness) {
    ++counts_[static_cast<std::size_t>(std::bit_width(staleness))];
    ++updates_;
    sum_ += static_cast<double>(staleness);
    if (staleness > max_) max_ = staleness;
  }
  // How many updates were counted, whatever their staleness.
  std::uint64_t updates() const { return updates_; }
  // The exact mean of the counted numbers (buckets play no part); 0 if there were no updates.
  double mean() const { return updates_ == 0 ? 0 : sum_ / static_cast<double>(updates_); }
  // The highest number that was counted, which is the end of the last bucket that is shown.
  std::uint64_t max() const { return max_; }
  // At least this share of the updates was no staler than this number. It is the end of the bucket
  // in which the quantile lies, so that it errs towards more staleness, by less than a factor of
  // two. 0 without updates.
  std::uint64_t quantile(double share) const {
    const double wanted = share * static_cast<double>(updates_);
    std::uint64_t seen = 0;
    for (const Bucket& bucket : buckets()) {
      seen += bucket.updates;
      if (static_cast<double>(seen) >= wanted) return bucket.to;
    }
    return max_;
  }
  // From the bucket of 0 to the one that holds the maximum, whose end is the maximum. Empty buckets
  // in between are listed. None without updates.
  // For a status or a report, which wants the whole distribution and not only a few of its numbers.
  std::vector<Bucket> buckets() const {
    std::vector<Bucket> all;
    if (updates_ == 0) return all;
    const auto last = static_cast<std::size_t>(std::bit_width(max_));
    for (std::size_t i = 0; i <= last; ++i) {
      const std::uint64_t from = i == 0 ? 0 : std::uint64_t{1} << (i - 1);
      all.push_back({from, i == last ? max_ : 2 * from - (i == 0 ? 0 : 1), counts_[i]});
    }
    return all;
  }

 private:
  // One bucket for each possible bit width of a 64-bit number, 0 included.
  std::array<std::uint64_t, 65> counts_{};
  std::uint64_t updates_ = 0, max_ = 0;
  // A floating-point sum, which cannot overflow in a run of any length.
  double sum_ = 0;
};

}  // namespace cairn
