#include "ps/shard/snapshot.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/error.h"

namespace cairn::ps {

Snapshot::Snapshot(const RowMemory& memory, CopyPool& pool) : memory_(memory), pool_(pool) {
  if (!memory_.hashed()) touched_ = TouchedRows(memory_.rows());
  cut_blocks();
}

// ---- called by the table ----

// By the rows' size in a checkpoint, whose blocks these are.
void Snapshot::cut_blocks() {
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
  greatest_row_ = seen_ = 0;
  changed_.reset();  // what it was is not known any more, or all of it was
  copies_.emplace(pool_, row_bytes);
  grew();
}

// Rows that are made after the freeze lie at places that the checkpoint does not reach.
void Snapshot::grew() {
  const std::int64_t last = (std::int64_t{1} << block_shift_) - 1;
  marked_in_.resize(static_cast<std::size_t>(block_of(memory_.held() + last)));
  marks_.resize(marked_in_.size() * words_a_block_);
  lists_.resize(marks_.size(), RowCopies::kNone);
  if (!memory_.hashed()) return;
  if (changed_.has_value()) changed_->grow(memory_.held());
  const auto rows = memory_.rows_held();
  for (; seen_ < memory_.held(); ++seen_)
    greatest_row_ = std::max(greatest_row_, rows[static_cast<std::size_t>(seen_)]);
}

void Snapshot::touch(const Places& places) {
  const auto add = [&places](TouchedRows& to) {
    if (places.range.has_value())
      to.add(*places.range);
    else
      to.add(places.at);
  };
  if (!memory_.hashed()) add(touched_);
  if (changed_.has_value()) add(*changed_);
}

void Snapshot::touch_all() {
  if (!memory_.hashed()) touched_.add(RowRange{0, memory_.rows()});
  if (changed_.has_value()) changed_->add(RowRange{0, memory_.held()});
}

void Snapshot::clear_marks(std::int64_t block) {
  marked_in_[static_cast<std::size_t>(block)] = epoch_;
  const std::size_t begin = static_cast<std::size_t>(block) * words_a_block_;
  std::fill_n(marks_.begin() + static_cast<std::ptrdiff_t>(begin), words_a_block_,
              std::uint64_t{0});
  std::fill_n(lists_.begin() + static_cast<std::ptrdiff_t>(begin), words_a_block_,
              RowCopies::kNone);
}

// A row that was never touched is marked all the same: it is about to be, and would look then as if
// the checkpoint held it.
void Snapshot::copy_aside(std::int64_t place) {
  if (!marked(block_of(place))) clear_marks(block_of(place));
  const std::size_t at = word_of(place);
  if ((marks_[at] & bit_of(place)) != 0) return;
  if (held(place)) {
    lists_[at] = copies_->add(static_cast<std::uint32_t>(place & 63), lists_[at]);
    memory_.save(std::span(&place, 1), copies_->row(lists_[at]));
  }
  marks_[at] |= bit_of(place);
}

void Snapshot::copy_rows_at(std::span<const std::int64_t> places) {
  for (const std::int64_t place : places)
    if (to_take(place)) copy_aside(place);
}

void Snapshot::before_write_all() {
  if (!copies_on_write_) return;
  for (std::int64_t block = first_block_to_take(); block < frozen_blocks_; ++block)
    copy_all_of(block);
  copies_on_write_ = false;
}

void Snapshot::copy_all_of(std::int64_t block) {
  const std::int64_t end = std::min(frozen_held_, (block + 1) << block_shift_);
  for (std::int64_t place = block << block_shift_; place < end; ++place)
    if (to_take(place)) copy_aside(place);
}

// The writer's blocks are cut for the old layout, and could not be read from the new one. They are
// made now and kept as they will be taken; not in the pool, whose slots have one size a table. A
// table is laid anew when an optimizer first claims it, so that few rows were ever touched.
void Snapshot::before_new_layout() {
  if (!frozen_ || all_aside_) return;
  while (std::optional<storage::StoredRows> rows = take()) {
    aside_bytes_ += rows->data.size();
    aside_.push_back(std::move(*rows));
  }
  all_aside_ = true;
}

// ---- how much a write would copy ----

bool Snapshot::would_copy(std::int64_t place) const {
  return to_take(place) && !written(place) && held(place);
}

std::size_t Snapshot::rows_to_copy(const Places& places) const {
  if (!copies_on_write_) return 0;
  std::size_t rows = 0, absent = 0;
  for (std::size_t i = 0; i < places.at.size(); ++i) {
    // A row that has no place yet is none that was frozen.
    if (absent < places.absent.size() && places.absent[absent] == i)
      ++absent;
    else
      rows += would_copy(places.at[i]) ? 1 : 0;
  }
  return rows;
}

std::size_t Snapshot::rows_to_copy_of_all() const {
  if (!copies_on_write_) return 0;
  std::size_t rows = 0;
  for (std::int64_t block = first_block_to_take(); block < frozen_blocks_; ++block)
    rows += would_copy_all_of(block);
  return rows;
}

std::size_t Snapshot::would_copy_all_of(std::int64_t block) const {
  const std::int64_t begin = block << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  std::size_t rows = 0;
  if (memory_.hashed() || block_shift_ < 6 || (end & 63) != 0 || begin < next_row_) {
    for (std::int64_t place = begin; place < end; ++place) rows += would_copy(place) ? 1 : 0;
    return rows;
  }
  // Both are a bit a row here, and words of the one are words of the other.
  for (std::int64_t place = begin; place < end; place += 64) {
    const std::uint64_t marks = marked(block) ? marks_[word_of(place)] : 0;
    rows += static_cast<std::size_t>(std::popcount(held_word(place) & ~marks));
  }
  return rows;
}

// ---- called for the checkpoint's writer ----

void Snapshot::freeze(Rows rows, bool track) {
  thaw();
  touched_.settle();
  choose_rows_of_delta(rows);
  changed_.reset();
  if (track) changed_.emplace(memory_.held());
  // The number stands in each block that was marked: to freeze a table is to raise it, in constant
  // time, instead of clearing a flag in every block.
  ++epoch_;
  frozen_ = true;
  frozen_blocks_ = static_cast<std::int64_t>(marked_in_.size());
  copies_on_write_ = frozen_blocks_ > 0;
  frozen_held_ = memory_.held();
  next_ = next_row_ = 0;
  if (memory_.hashed())
    order_.begin(frozen_held_, greatest_row_, delta_.has_value() ? &*delta_ : nullptr);
  const VariableSpec& spec = memory_.spec();
  record_ = {spec.name, spec.dtype,      spec.shape,       memory_.rule(),
             {},        memory_.range(), memory_.updates()};
  for (const SlotSpec& slot : rule_slots(memory_.rule())) record_.slots.emplace_back(slot.name);
}

// The rows that the last freeze held are noted after it, too: its checkpoint may come to nothing,
// and then the next one holds them.
void Snapshot::choose_rows_of_delta(Rows rows) {
  const bool known =
      changed_.has_value() && rows != Rows::kAll && (rows == Rows::kChanged || delta_.has_value());
  if (!known) return delta_.reset();
  changed_->settle();
  if (rows == Rows::kChanged) {
    delta_ = changed_->words();
    return;
  }
  delta_->resize(changed_->words().size());
  for (std::size_t i = 0; i < delta_->size(); ++i) (*delta_)[i] |= changed_->words()[i];
}

void Snapshot::thaw() {
  frozen_ = all_aside_ = copies_on_write_ = false;
  order_.clear();
  copies_->clear();
  aside_.clear();
  aside_bytes_ = 0;
}

const storage::TableRecord& Snapshot::record() const {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  return record_;
}

void Snapshot::prepare() {
  constexpr std::int64_t kSlice = 1 << 19;
  if (memory_.hashed()) order_.prepare(memory_.rows_held(), kSlice);
}

std::optional<storage::StoredRows> Snapshot::take() {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  if (all_aside_) {
    if (aside_.empty()) return std::nullopt;
    storage::StoredRows rows = std::move(aside_.front());
    aside_.pop_front();
    aside_bytes_ -= rows.data.size();
    return rows;
  }
  choose_places();
  std::optional<storage::StoredRows> rows;
  if (!places_.empty()) rows = stored_rows();
  if (next_ == end_of_places())
    next_row_ = INT64_MAX;
  else if (!memory_.hashed())
    next_row_ = next_;
  else
    next_row_ = memory_.row_at(places_.back()) + 1;
  copies_on_write_ = copies_on_write_ && next_row_ != INT64_MAX;
  return rows;
}

// The next block of places whose rows are the checkpoint's, in the order of their rows: a row that
// was written since has a copy, or was none of them before; the others are as they were.
void Snapshot::choose_places() {
  const std::int64_t most = std::int64_t{1} << block_shift_;
  places_.clear();
  if (memory_.hashed()) {
    while (!order_.prepared()) prepare();
    const std::int64_t end = std::min(order_.size(), next_ + most);
    for (const std::uint32_t place : order_.sorted(memory_.rows_held(), next_, end))
      places_.push_back(place);
    next_ = end;
    return;
  }
  for (; next_ < frozen_held_ && static_cast<std::int64_t>(places_.size()) < most; ++next_) {
    if ((next_ & 63) == 0 && held_word(next_) == 0)
      next_ = std::min(next_ + 63, frozen_held_ - 1);  // none of 64
    else if (written(next_) ? has_copy(next_) : held(next_))
      places_.push_back(next_);
  }
}

bool Snapshot::has_copy(std::int64_t place) const {
  RowCopies::Slot slot = lists_[word_of(place)];
  while (slot != RowCopies::kNone && copies_->place(slot) != (place & 63))
    slot = copies_->next(slot);
  return slot != RowCopies::kNone;
}

RowCopies::Slot Snapshot::unlink_copy(std::int64_t place) {
  if (!written(place)) return RowCopies::kNone;
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
  return slot;
}

// Rows `places_` as they were, whose copies go.
storage::StoredRows Snapshot::stored_rows() {
  const RowLayout& layout = memory_.layout();
  storage::StoredRows out{.dtype = memory_.spec().dtype,
                          .rule = memory_.rule().kind,
                          .slots = layout.slots,
                          .dim = layout.dim};
  const std::int64_t first = memory_.row_at(places_.front());
  out.first_row = memory_.range().begin + first;
  out.offsets.reserve(places_.size());
  for (const std::int64_t place : places_)
    out.offsets.push_back(static_cast<std::uint64_t>(memory_.row_at(place) - first));
  const std::size_t row_bytes = layout.saved_row_bytes();
  out.data.resize(places_.size() * row_bytes);
  std::size_t unsaved = 0;  // as they lie, up to the one that is looked at
  const auto save_up_to = [&](std::size_t end) {
    memory_.save(std::span(places_).subspan(unsaved, end - unsaved),
                 out.data.data() + unsaved * row_bytes);
    unsaved = end + 1;
  };
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const RowCopies::Slot copy = unlink_copy(places_[i]);
    if (copy == RowCopies::kNone) continue;
    save_up_to(i);
    std::copy_n(copies_->row(copy), row_bytes, out.data.data() + i * row_bytes);
    copies_->remove(copy);
  }
  save_up_to(places_.size());
  return out;
}

}  // namespace cairn::ps
