// Floats are looked at twice while they are in the cache: a loop over lanes, which the compiler
// vectorises, finds bounds, sums and whether any value is not finite; then each is counted in its
// bucket by the upper bits of its representation.
#include "tools/ckpt/field_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/clones.h"
#include "tools/ckpt/support.h"

namespace cairn::tools::ckpt {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kChunk = 2048;  // values: few enough for sums in float32 lanes
constexpr std::uint32_t kExponent = 0x7f800000;

struct Chunk {
  float min, max;
  double sum, squares;
  bool finite;
};

CAIRN_CLONES Chunk measure(const float* values, std::size_t count) {
  float low[kLanes], high[kLanes], sum[kLanes] = {}, squares[kLanes] = {};
  std::uint32_t odd[kLanes] = {};
  for (std::size_t lane = 0; lane < kLanes; ++lane) low[lane] = high[lane] = values[0];
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      sum[lane] += value;
      squares[lane] += value * value;
      const auto bits = std::bit_cast<std::uint32_t>(value);
      odd[lane] |= (bits & kExponent) == kExponent ? 1u : 0u;
    }
  Chunk out{low[0], high[0], 0, 0, true};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    out.min = std::min(out.min, low[lane]);
    out.max = std::max(out.max, high[lane]);
    out.sum += static_cast<double>(sum[lane]);
    out.squares += static_cast<double>(squares[lane]);
    out.finite = out.finite && odd[lane] == 0;
  }
  for (std::size_t i = whole; i < count; ++i) {
    out.min = std::min(out.min, values[i]);
    out.max = std::max(out.max, values[i]);
    out.sum += static_cast<double>(values[i]);
    out.squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    out.finite = out.finite && std::isfinite(values[i]);
  }
  // Squares of large values overflow in float32.
  out.finite = out.finite && std::isfinite(out.squares) && std::isfinite(out.sum);
  return out;
}

std::size_t bucket_of(float value) { return std::bit_cast<std::uint32_t>(value) >> 23; }

}  // namespace

void FieldStats::add(DType dtype, const std::byte* at, std::size_t rows, std::size_t stride,
                     std::size_t width) {
  if (dtype != DType::kFloat32) {
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < width; ++i)
        add_slowly(element_value(dtype, at + row * stride + i * dtype_bytes(dtype)));
    return;
  }
  // Short rows are gathered, so that the loops above are long.
  for (std::size_t row = 0; row < rows; ++row) {
    const std::byte* from = at + row * stride;
    for (std::size_t i = 0; i < width;) {
      const std::size_t n = std::min(width - i, kChunk - gathered_.size());
      const std::size_t begin = gathered_.size();
      gathered_.resize(begin + n);
      std::memcpy(gathered_.data() + begin, from + i * sizeof(float), n * sizeof(float));
      i += n;
      if (gathered_.size() < kChunk) continue;
      add_floats(gathered_.data(), gathered_.size());
      gathered_.clear();
    }
  }
  if (!gathered_.empty()) add_floats(gathered_.data(), gathered_.size());
  gathered_.clear();
}

void FieldStats::add_floats(const float* values, std::size_t count) {
  const Chunk chunk = measure(values, count);
  if (!chunk.finite) {
    for (std::size_t i = 0; i < count; ++i) add_slowly(static_cast<double>(values[i]));
    return;
  }
  count_ += count;
  min_ = any_ ? std::min(min_, static_cast<double>(chunk.min)) : static_cast<double>(chunk.min);
  max_ = any_ ? std::max(max_, static_cast<double>(chunk.max)) : static_cast<double>(chunk.max);
  any_ = true;
  sum_ += chunk.sum;
  squares_ += chunk.squares;
  for (std::size_t i = 0; i < count; ++i) ++buckets_[i % 4][bucket_of(values[i])];
  for (std::size_t i = 0; i < count; ++i) zeros_ += values[i] == 0.0f ? 1 : 0;
}

void FieldStats::add_slowly(double value) {
  ++count_;
  if (std::isnan(value)) {
    ++nans_;
    return;
  }
  if (std::isinf(value)) {
    ++infinities_;
    return;
  }
  min_ = any_ ? std::min(min_, value) : value;
  max_ = any_ ? std::max(max_, value) : value;
  any_ = true;
  sum_ += value;
  squares_ += value * value;
  zeros_ += value == 0.0 ? 1 : 0;
  ++buckets_[0][bucket_of(static_cast<float>(value))];
}

double FieldStats::mean() const { return finite() == 0 ? 0 : sum_ / static_cast<double>(finite()); }

double FieldStats::rms() const {
  return finite() == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(finite()));
}

std::vector<FieldStats::Bucket> FieldStats::histogram() const {
  std::vector<Bucket> all;
  const auto add = [&](std::size_t bucket, bool negative) {
    Bucket one;
    for (const auto& table : buckets_) one.count += table[bucket];
    if (one.count == 0) return;
    const int exponent = static_cast<int>(bucket % 256);
    const double low = exponent == 0 ? 0 : std::ldexp(1.0, exponent - 127);
    const double high = std::ldexp(1.0, std::max(exponent, 1) - 127 + (exponent == 0 ? 0 : 1));
    one.low = negative ? -high : low;
    one.high = negative ? -low : high;
    all.push_back(one);
  };
  for (std::size_t bucket = kBuckets; bucket-- > kBuckets / 2;) add(bucket, true);
  for (std::size_t bucket = 0; bucket < kBuckets / 2; ++bucket) add(bucket, false);
  return all;
}

}  // namespace cairn::tools::ckpt
