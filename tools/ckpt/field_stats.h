// FieldStats: what `cairn ckpt stats` tells of the parameters of a variable, or of one slot.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn::tools::ckpt {

// Values of one field, row by row. NaN and infinity are counted, and left out of everything else.
//   Thread  one at a time.
//   Cost  about a nanosecond a float32.
class FieldStats {
 public:
  // A value's bucket is its sign and its binary exponent: the upper nine bits of a float32.
  static constexpr std::size_t kBuckets = 512;
  // Values of magnitude in [low, high) and of one sign; 0 alone has a bucket of its own, with the
  // subnormal values.
  struct Bucket {
    double low = 0, high = 0;  // below 0: of negative values
    std::uint64_t count = 0;
  };

  // Rows that lie `stride` bytes apart, of which `width` elements from `at` on are the field's.
  void add(DType dtype, const std::byte* at, std::size_t rows, std::size_t stride,
           std::size_t width);

  std::uint64_t count() const { return count_; }  // all values
  std::uint64_t nans() const { return nans_; }
  std::uint64_t infinities() const { return infinities_; }
  std::uint64_t zeros() const { return zeros_; }
  std::uint64_t finite() const { return count_ - nans_ - infinities_; }
  // These are of finite values; 0 if there are none.
  double min() const { return finite() == 0 ? 0 : min_; }
  double max() const { return finite() == 0 ? 0 : max_; }
  double mean() const;
  double rms() const;
  // Those that are not empty, in ascending order.
  std::vector<Bucket> histogram() const;

 private:
  void add_floats(const float* values, std::size_t count);
  void add_slowly(double value);

  std::uint64_t count_ = 0, nans_ = 0, infinities_ = 0, zeros_ = 0;
  double min_ = 0, max_ = 0, sum_ = 0, squares_ = 0;
  bool any_ = false;
  // Several tables, so that equal values that follow each other do not wait for one counter.
  std::array<std::array<std::uint64_t, kBuckets>, 4> buckets_{};
  std::vector<float> gathered_;
};

}  // namespace cairn::tools::ckpt
