#include "ps/snapshot/touched_rows.h"

#include <algorithm>

namespace cairn::ps {

TouchedRows::TouchedRows(std::int64_t rows)
    : words_((static_cast<std::size_t>(rows) + 63) / 64),
      noted_max_(static_cast<std::size_t>(rows) / 64) {
  noted_.reserve(noted_max_);
}

void TouchedRows::grow(std::int64_t rows) {
  words_.resize((static_cast<std::size_t>(rows) + 63) / 64);
  noted_max_ = static_cast<std::size_t>(rows) / 64;
}

// Rows are noted in a list at first, which is written in order and stays in the caches, and set as
// bits only when the list is full or a checkpoint asks.
void TouchedRows::add(std::span<const std::int64_t> rows) {
  if (noted_.size() + rows.size() > noted_max_) settle();
  if (rows.size() > noted_max_) return set(rows);
  noted_.insert(noted_.end(), rows.begin(), rows.end());
}

void TouchedRows::add(RowRange rows) {
  const auto from = static_cast<std::size_t>(rows.begin), to = static_cast<std::size_t>(rows.end);
  // The bits of a word from this row's on.
  const auto bits_from = [](std::size_t row) { return ~std::uint64_t{0} << (row & 63); };
  if (from == to) return;
  const std::size_t first = from >> 6, last = to >> 6;
  if (first == last) {
    words_[first] |= bits_from(from) & ~bits_from(to);
    return;
  }
  words_[first] |= bits_from(from);
  std::fill(words_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
            words_.begin() + static_cast<std::ptrdiff_t>(last), ~std::uint64_t{0});
  if ((to & 63) != 0) words_[last] |= ~bits_from(to);
}

void TouchedRows::remove(std::span<const std::int64_t> rows) {
  settle();
  for (const std::int64_t row : rows)
    words_[static_cast<std::size_t>(row) >> 6] &= ~(std::uint64_t{1} << (row & 63));
}

void TouchedRows::move(std::int64_t from, std::int64_t to) {
  settle();
  if (!has(from)) return;
  set({&to, 1});
  remove({&from, 1});
}

void TouchedRows::settle() {
  set(noted_);
  noted_.clear();
}

bool TouchedRows::none() const {
  return noted_.empty() &&
         std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
}

void TouchedRows::clear() {
  noted_.clear();
  std::fill(words_.begin(), words_.end(), 0);
}

// The bits of a large part are no more in the cache than its rows.
void TouchedRows::set(std::span<const std::int64_t> rows) {
  constexpr std::size_t kAhead = 64;
  std::uint64_t* const words = words_.data();
  const auto word_of = [&](std::size_t i) -> std::uint64_t& {
    return words[static_cast<std::size_t>(rows[i]) >> 6];
  };
  for (std::size_t i = 0; i < std::min(kAhead, rows.size()); ++i)
    __builtin_prefetch(&word_of(i), 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) __builtin_prefetch(&word_of(i + kAhead), 1);
    const std::uint64_t bit = std::uint64_t{1} << (rows[i] & 63);
    // A cache line that need not change is not written back to memory.
    if ((word_of(i) & bit) == 0) word_of(i) |= bit;
  }
}

}  // namespace cairn::ps
