// Staleness: how stale the updates of a run were, as a histogram of power-of-two buckets.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

// Bucket 0 holds updates of staleness 0, bucket i those of [2^(i-1), 2^i).  Thread: one.
class StalenessHistogram {
 public:
  struct Bucket {
    std::uint64_t from = 0, to = 0;  // both inclusive
    std::uint64_t updates = 0;
  };

  void add(std::uint64_t staleness) {
    ++counts_[static_cast<std::size_t>(std::bit_width(staleness))];
    ++updates_;
    sum_ += static_cast<double>(staleness);
    if (staleness > max_) max_ = staleness;
  }
  std::uint64_t updates() const { return updates_; }
  double mean() const { return updates_ == 0 ? 0 : sum_ / static_cast<double>(updates_); }
  std::uint64_t max() const { return max_; }
  // At least this share of the updates was no staler than so: the end of the bucket in which it
  // lies. 0 without updates.
  std::uint64_t quantile(double share) const {
    const double wanted = share * static_cast<double>(updates_);
    std::uint64_t seen = 0;
    for (const Bucket& bucket : buckets()) {
      seen += bucket.updates;
      if (static_cast<double>(seen) >= wanted) return bucket.to;
    }
    return max_;
  }
  // From 0 to the one that holds the maximum, whose end is the maximum. None without updates.
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
  std::array<std::uint64_t, 65> counts_{};
  std::uint64_t updates_ = 0, max_ = 0;
  double sum_ = 0;
};

}  // namespace cairn
