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
  const auto rows = memory_.rows_held();
  for (; seen_ < memory_.held(); ++seen_)
    greatest_row_ = std::max(greatest_row_, rows[static_cast<std::size_t>(seen_)]);
}

void Snapshot::touch(const Places& places) {
  if (memory_.hashed()) return;
  if (places.range.has_value())
    touched_.add(*places.range);
  else
    touched_.add(places.at);
}

void Snapshot::touch_all() {
  if (!memory_.hashed()) touched_.add(RowRange{0, memory_.rows()});
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
  if (ever_touched(place)) {
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
  const std::int64_t taken = taken_;
  for (std::int64_t nth = taken; nth < frozen_blocks_; ++nth) {
    std::optional<storage::StoredRows> rows = take();
    if (!rows.has_value()) continue;
    aside_bytes_ += rows->data.size();
    aside_.emplace(nth, std::move(*rows));
  }
  taken_ = taken;
  all_aside_ = true;
}

// ---- how much a write would copy ----

bool Snapshot::would_copy(std::int64_t place) const {
  return to_take(place) && !written(place) && ever_touched(place);
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
  if (memory_.hashed() || block_shift_ < 6 || (end & 63) != 0) {
    for (std::int64_t place = begin; place < end; ++place) rows += would_copy(place) ? 1 : 0;
    return rows;
  }
  // Both are a bit a row here, and words of the one are words of the other.
  for (std::int64_t place = begin; place < end; place += 64) {
    const std::uint64_t marks = marked(block) ? marks_[word_of(place)] : 0;
    rows += static_cast<std::size_t>(std::popcount(touched_.word_of(place) & ~marks));
  }
  return rows;
}

// ---- called for the checkpoint's writer ----

void Snapshot::freeze() {
  thaw();
  touched_.settle();
  // The number stands in each block that was marked: to freeze a table is to raise it, in constant
  // time, instead of clearing a flag in every block.
  ++epoch_;
  frozen_ = true;
  frozen_blocks_ = static_cast<std::int64_t>(marked_in_.size());
  copies_on_write_ = frozen_blocks_ > 0;
  frozen_held_ = memory_.held();
  taken_ = next_row_ = 0;
  if (memory_.hashed()) order_.begin(frozen_held_, greatest_row_);
  const VariableSpec& spec = memory_.spec();
  record_ = {spec.name, spec.dtype,      spec.shape,       memory_.rule(),
             {},        memory_.range(), memory_.updates()};
  for (const SlotSpec& slot : rule_slots(memory_.rule())) record_.slots.emplace_back(slot.name);
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
  CAIRN_CHECK(frozen_ && taken_ < frozen_blocks_, "block ", taken_, " of '", memory_.spec().name,
              "'");
  if (all_aside_) {
    auto made = aside_.extract(taken_++);
    if (made.empty()) return std::nullopt;
    aside_bytes_ -= made.mapped().data.size();
    return std::move(made.mapped());
  }
  choose_places();
  std::optional<storage::StoredRows> rows;
  if (!places_.empty()) rows = stored_rows();
  ++taken_;
  if (!memory_.hashed())
    next_row_ = taken_ << block_shift_;
  else if (!places_.empty())
    next_row_ = memory_.row_at(places_.back()) + 1;
  if (taken_ == frozen_blocks_) copies_on_write_ = false;
  return rows;
}

// The places of the next block's rows that are the checkpoint's, in the order of their rows: a row
// that was written since has a copy, or was untouched before; the others are as they were.
void Snapshot::choose_places() {
  const std::int64_t begin = taken_ << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  places_.clear();
  if (memory_.hashed()) {
    const auto places = order_.sorted(memory_.rows_held(), begin, end);
    places_.assign(places.begin(), places.end());
    return;
  }
  for (std::int64_t place = begin; place < end; ++place)
    if (written(place) ? has_copy(place) : ever_touched(place)) places_.push_back(place);
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
