#include "ps/snapshot/written_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "storage/row_block.h"

namespace cairn::ps {

void WrittenRows::lay() {
  const std::size_t row_bytes = memory_.layout().saved_row_bytes();
  const std::size_t rows = row_bytes > 0
                               ? std::max<std::size_t>(1, storage::kBlockBytes / row_bytes)
                               : storage::kBlockBytes;
  block_shift_ = static_cast<int>(std::bit_width(std::bit_floor(rows)) - 1);
  // A block's bits are words of its own, so that they can be cleared by themselves.
  words_a_block_ = std::max<std::size_t>(1, (std::size_t{1} << block_shift_) / 64);
  marked_in_.clear();
  marks_.clear();
  lists_.clear();
  copies_.emplace(pool_, row_bytes + (numbers_ ? sizeof(std::int64_t) : 0));
  grow();
}

void WrittenRows::grow() {
  marked_in_.resize(static_cast<std::size_t>(block_of(memory_.held() + block_rows() - 1)));
  marks_.resize(marked_in_.size() * words_a_block_);
  lists_.resize(marks_.size(), RowCopies::kNone);
}

void WrittenRows::clear(std::int64_t block) {
  marked_in_[static_cast<std::size_t>(block)] = moment_;
  const auto begin =
      static_cast<std::ptrdiff_t>(block) * static_cast<std::ptrdiff_t>(words_a_block_);
  std::fill_n(marks_.begin() + begin, words_a_block_, std::uint64_t{0});
  std::fill_n(lists_.begin() + begin, words_a_block_, RowCopies::kNone);
}

void WrittenRows::write(std::int64_t place, Copy copy) {
  if (!marked(block_of(place))) clear(block_of(place));
  const std::size_t at = word_of(place);
  if ((marks_[at] & bit_of(place)) != 0) return;
  if (copy == Copy::kYes) {
    lists_[at] = copies_->add(static_cast<std::uint32_t>(place & 63), lists_[at]);
    memory_.save(std::span(&place, 1), copies_->row(lists_[at]));
    const std::int64_t row = memory_.row_at(place);
    if (numbers_)
      std::memcpy(copies_->row(lists_[at]) + memory_.layout().saved_row_bytes(), &row, sizeof row);
  }
  marks_[at] |= bit_of(place);
}

RowCopies::Slot WrittenRows::copy_of(std::int64_t place) const {
  RowCopies::Slot slot = lists_[word_of(place)];
  while (slot != RowCopies::kNone && copies_->place(slot) != (place & 63))
    slot = copies_->next(slot);
  return slot;
}

std::int64_t WrittenRows::row_of_copy(std::int64_t place) const {
  std::int64_t row = 0;
  std::memcpy(&row, copies_->row(copy_of(place)) + memory_.layout().saved_row_bytes(), sizeof row);
  return row;
}

bool WrittenRows::take_copy(std::int64_t place, std::byte* to) {
  if (!written(place)) return false;
  RowCopies::Slot& first = lists_[word_of(place)];
  RowCopies::Slot before = RowCopies::kNone, slot = first;
  while (copies_->place(slot) != (place & 63)) {
    before = slot;
    slot = copies_->next(slot);
  }
  if (before == RowCopies::kNone)
    first = copies_->next(slot);
  else
    copies_->set_next(before, copies_->next(slot));
  std::copy_n(copies_->row(slot), memory_.layout().saved_row_bytes(), to);
  copies_->remove(slot);
  return true;
}

}  // namespace cairn::ps
