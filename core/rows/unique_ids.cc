#include "core/rows/unique_ids.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/base/clones.h"
#include "core/base/error.h"

namespace cairn {
namespace {

constexpr int kDigitBits = 11;  // of the radix sort

// Sets the ids' bits, lists them in order, and numbers the words, so that an id's rank is a
// popcount away.
CAIRN_CLONES std::size_t rank_by_bitmap(const std::int64_t* ids, std::size_t n, std::uint64_t* bits,
                                        std::int32_t* ranks, std::size_t words,
                                        std::int64_t* unique, std::int32_t* inverse) {
  for (std::size_t i = 0; i < n; ++i) bits[ids[i] >> 6] |= std::uint64_t{1} << (ids[i] & 63);
  std::size_t count = 0;
  for (std::size_t w = 0; w < words; ++w) {
    ranks[w] = static_cast<std::int32_t>(count);
    for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
      unique[count++] = static_cast<std::int64_t>(w * 64) + std::countr_zero(rest);
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t below = bits[ids[i] >> 6] & ((std::uint64_t{1} << (ids[i] & 63)) - 1);
    inverse[i] = ranks[ids[i] >> 6] + std::popcount(below);
  }
  return count;
}

}  // namespace

std::int64_t UniqueIds::first_outside(std::int64_t bound) const {
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (ids_[i] < 0 || ids_[i] >= bound) return static_cast<std::int64_t>(i);
  return -1;
}

void UniqueIds::find(std::int64_t bound) {
  CAIRN_CHECK(ids_.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
              ids_.size(), " ids in one read");
  inverse_.resize(ids_.size());
  // Never without memory, even of no ids at all: a tensor without memory is no tensor, and a push
  // without ids is a dense one.
  if (unique_->size() < std::max<std::size_t>(1, ids_.size()))
    unique_->resize(std::max<std::size_t>(1, ids_.size()));
  // Scanning the bitmap costs a word for 64 rows; sorting some dozens of operations an id.
  if (bound / 64 <= static_cast<std::int64_t>(ids_.size()) * 16 + 1024)
    find_by_bitmap(bound);
  else
    find_by_sorting(bound);
}

void UniqueIds::find_by_bitmap(std::int64_t bound) {
  auto words = static_cast<std::size_t>((bound + 63) / 64);
  bits_.assign(words, 0);
  ranks_.resize(words);
  count_ = rank_by_bitmap(ids_.data(), ids_.size(), bits_.data(), ranks_.data(), words,
                          unique_->data(), inverse_.data());
}

// Least significant digit first (Knuth, "Sorting and Searching", 5.2.5): each pass is stable, so
// after the last one the ids ascend and equal ones keep their order. Digits above those of the
// bound are all zero and are left out.
void UniqueIds::find_by_sorting(std::int64_t bound) {
  entries_.resize(ids_.size());
  other_.resize(ids_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i)
    entries_[i] = {ids_[i], static_cast<std::int32_t>(i)};
  for (int shift = 0; shift < 63 && (bound - 1) >> shift != 0; shift += kDigitBits) {
    std::array<std::size_t, (1 << kDigitBits) + 1> starts{};
    auto digit = [&](const Entry& e) {
      return static_cast<std::size_t>(e.id >> shift) & ((1 << kDigitBits) - 1);
    };
    for (const Entry& e : entries_) ++starts[digit(e) + 1];
    for (std::size_t d = 1; d < starts.size(); ++d) starts[d] += starts[d - 1];
    for (const Entry& e : entries_) other_[starts[digit(e)]++] = e;
    entries_.swap(other_);
  }
  count_ = 0;
  for (const Entry& e : entries_) {
    if (count_ == 0 || (*unique_)[count_ - 1] != e.id) (*unique_)[count_++] = e.id;
    inverse_[static_cast<std::size_t>(e.position)] = static_cast<std::int32_t>(count_ - 1);
  }
}

Tensor UniqueIds::tensor() const {
  return Tensor::borrowed(DType::kInt64, Shape{static_cast<std::int64_t>(count_)}, unique_->data(),
                          unique_);
}

}  // namespace cairn
