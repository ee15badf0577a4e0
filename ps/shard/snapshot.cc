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
  blocks_.clear();
  marks_.clear();
  least_row_.clear();
  copies_.emplace(pool_, row_bytes);
  grew();
}

// Rows that are made after the freeze lie at places that the checkpoint does not reach.
void Snapshot::grew() {
  const std::size_t before = blocks_.size();
  const std::int64_t last = (std::int64_t{1} << block_shift_) - 1;
  blocks_.resize(static_cast<std::size_t>(block_of(memory_.held() + last)));
  marks_.resize(blocks_.size() * words_a_block_);
  if (!memory_.hashed()) return;
  least_row_.resize(blocks_.size(), INT64_MAX);
  // The last of the blocks that were there may have got more rows.
  const auto rows = memory_.rows_held();
  for (std::size_t place = (before > 0 ? before - 1 : 0) << block_shift_; place < rows.size();
       ++place) {
    std::int64_t& least = least_row_[place >> block_shift_];
    least = std::min(least, rows[place]);
  }
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

void Snapshot::clear_marks(Block& block, std::int64_t number) {
  block.marked_in = epoch_;
  block.copies = RowCopies::kNone;
  std::fill_n(marks_.begin() + number * static_cast<std::int64_t>(words_a_block_), words_a_block_,
              std::uint64_t{0});
}

// A row that was never touched is marked all the same: it is about to be, and would look then as if
// the checkpoint held it.
void Snapshot::copy_aside(Block& block, std::int64_t place) {
  std::uint64_t& word = marks_[word_of(place)];
  const std::int64_t within = place - (block_of(place) << block_shift_);
  if ((word & bit_of(within)) != 0) return;
  if (ever_touched(place)) {
    block.copies = copies_->add(static_cast<std::uint32_t>(within), block.copies);
    memory_.save(std::span(&place, 1), copies_->row(block.copies));
  }
  word |= bit_of(within);
}

void Snapshot::copy_rows_at(std::span<const std::int64_t> places) {
  for (const std::int64_t place : places) {
    if (place >= frozen_held_) continue;
    Block& of = block(block_of(place));
    if (of.closed_in == epoch_) continue;
    if (of.marked_in != epoch_) clear_marks(of, block_of(place));
    copy_aside(of, place);
  }
}

void Snapshot::before_write_all() {
  if (!copies_on_write_) return;
  for (std::int64_t number = 0; number < frozen_blocks_; ++number)
    if (block(number).closed_in != epoch_) copy_all_of(number);
}

void Snapshot::copy_all_of(std::int64_t number) {
  Block& of = block(number);
  if (of.marked_in != epoch_) clear_marks(of, number);
  const std::int64_t end = std::min(frozen_held_, (number + 1) << block_shift_);
  for (std::int64_t place = number << block_shift_; place < end; ++place) copy_aside(of, place);
  close(of);
}

void Snapshot::close(Block& block) {
  if (block.closed_in == epoch_) return;
  block.closed_in = epoch_;
  copies_on_write_ = --open_blocks_ > 0;
}

// The writer's blocks are cut for the old layout, and could not be read from the new one. They are
// made now and kept as they will be taken; not in the pool, whose slots have one size a table. A
// table is laid anew when an optimizer first claims it, so that few rows were ever touched.
void Snapshot::before_new_layout() {
  if (!frozen_ || all_aside_) return;
  for (std::int64_t nth = 0; nth < frozen_blocks_; ++nth) {
    const std::int64_t number =
        memory_.hashed() ? frozen_order_[static_cast<std::size_t>(nth)] : nth;
    if (block(number).taken_in == epoch_) continue;
    std::optional<storage::StoredRows> rows = take(nth);
    if (!rows.has_value()) continue;
    aside_bytes_ += rows->data.size();
    aside_.emplace(nth, std::move(*rows));
  }
  all_aside_ = true;
}

// ---- how much a write would copy ----

bool Snapshot::would_copy(std::int64_t place) const {
  if (place >= frozen_held_) return false;
  const Block& of = block(block_of(place));
  if (of.closed_in == epoch_) return false;
  const bool marked = of.marked_in == epoch_ &&
                      (marks_[word_of(place)] & bit_of(place - (block_of(place) << block_shift_)));
  return !marked && ever_touched(place);
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
  for (std::int64_t number = 0; number < frozen_blocks_; ++number)
    if (block(number).closed_in != epoch_) rows += would_copy_all_of(number);
  return rows;
}

std::size_t Snapshot::would_copy_all_of(std::int64_t number) const {
  const std::int64_t begin = number << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  const bool marked = block(number).marked_in == epoch_;
  std::size_t rows = 0;
  if (memory_.hashed() || block_shift_ < 6 || (end & 63) != 0) {
    for (std::int64_t place = begin; place < end; ++place) rows += would_copy(place) ? 1 : 0;
    return rows;
  }
  // Both are a bit a row here, and words of the one are words of the other.
  for (std::int64_t place = begin; place < end; place += 64) {
    const std::uint64_t marks = marked ? marks_[word_of(place)] : 0;
    rows += static_cast<std::size_t>(std::popcount(touched_.word_of(place) & ~marks));
  }
  return rows;
}

// ---- called for the checkpoint's writer ----

void Snapshot::freeze() {
  thaw();
  touched_.settle();
  // The number stands in each block that was marked or taken: to freeze a table is to raise it, in
  // constant time, instead of clearing a flag in every block.
  ++epoch_;
  frozen_ = true;
  frozen_blocks_ = open_blocks_ = static_cast<std::int64_t>(blocks_.size());
  copies_on_write_ = open_blocks_ > 0;
  frozen_held_ = memory_.held();
  // The rows of a hashed table lie in the order in which they were made. The checkpoint's keys have
  // to ascend, so the blocks are handed out in the order of their least row.
  if (memory_.hashed()) {
    frozen_order_.resize(blocks_.size());
    std::iota(frozen_order_.begin(), frozen_order_.end(), std::int64_t{0});
    std::sort(frozen_order_.begin(), frozen_order_.end(), [this](std::int64_t a, std::int64_t b) {
      return least_row_[static_cast<std::size_t>(a)] < least_row_[static_cast<std::size_t>(b)];
    });
  }
  const VariableSpec& spec = memory_.spec();
  record_ = {spec.name, spec.dtype,      spec.shape,        memory_.rule(),
             {},        memory_.range(), memory_.updates(), memory_.hashed()};
  for (const SlotSpec& slot : rule_slots(memory_.rule())) record_.slots.emplace_back(slot.name);
}

void Snapshot::thaw() {
  frozen_ = all_aside_ = copies_on_write_ = false;
  copies_->clear();
  aside_.clear();
  aside_bytes_ = 0;
}

const storage::TableRecord& Snapshot::record() const {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  return record_;
}

std::optional<storage::StoredRows> Snapshot::take(std::int64_t nth) {
  CAIRN_CHECK(frozen_ && nth < frozen_blocks_, "block ", nth, " of '", memory_.spec().name, "'");
  if (all_aside_) {
    auto made = aside_.extract(nth);
    if (made.empty()) return std::nullopt;
    aside_bytes_ -= made.mapped().data.size();
    return std::move(made.mapped());
  }
  const std::int64_t number = memory_.hashed() ? frozen_order_[static_cast<std::size_t>(nth)] : nth;
  Block& of = block(number);
  if (of.taken_in == epoch_) return std::nullopt;
  storage::StoredRows rows = stored_rows(number);
  of.taken_in = epoch_;
  close(of);
  let_copies_go(of);
  if (rows.offsets.empty()) return std::nullopt;
  return rows;
}

void Snapshot::let_copies_go(Block& block) {
  if (block.marked_in != epoch_) return;
  for (RowCopies::Slot slot = block.copies; slot != RowCopies::kNone;) {
    const RowCopies::Slot next = copies_->next(slot);
    copies_->remove(slot);
    slot = next;
  }
  block.copies = RowCopies::kNone;
}

// The rows of the block as they were, in the order of their numbers: a row that was written since
// has a copy, or is none of the checkpoint's; the others are as they were.
storage::StoredRows Snapshot::stored_rows(std::int64_t number) {
  const Block& of = block(number);
  const bool marked = of.marked_in == epoch_;
  const std::int64_t begin = number << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  copy_of_.assign(static_cast<std::size_t>(end - begin), nullptr);
  if (marked)
    for (RowCopies::Slot slot = of.copies; slot != RowCopies::kNone; slot = copies_->next(slot))
      copy_of_[copies_->place(slot)] = copies_->row(slot);
  const auto copy_at = [&](std::int64_t place) {
    return copy_of_[static_cast<std::size_t>(place - begin)];
  };
  const auto written = [&](std::int64_t place) {
    return marked && (marks_[word_of(place)] & bit_of(place - begin)) != 0;
  };
  places_.clear();
  for (std::int64_t place = begin; place < end; ++place)
    if (written(place) ? copy_at(place) != nullptr : ever_touched(place)) places_.push_back(place);
  if (memory_.hashed())
    std::sort(places_.begin(), places_.end(), [this](std::int64_t a, std::int64_t b) {
      return memory_.row_at(a) < memory_.row_at(b);
    });
  const RowLayout& layout = memory_.layout();
  storage::StoredRows out{.dtype = memory_.spec().dtype,
                          .rule = memory_.rule().kind,
                          .slots = layout.slots,
                          .dim = layout.dim};
  if (places_.empty()) return out;
  const std::int64_t first = memory_.row_at(places_.front());
  out.first_row = memory_.range().begin + first;
  out.offsets.reserve(places_.size());
  for (const std::int64_t place : places_)
    out.offsets.push_back(static_cast<std::uint64_t>(memory_.row_at(place) - first));
  const std::size_t row_bytes = layout.saved_row_bytes();
  out.data.resize(places_.size() * row_bytes);
  for (std::size_t i = 0; i < places_.size();) {
    std::byte* const to = out.data.data() + i * row_bytes;
    if (const std::byte* copy = copy_at(places_[i])) {
      std::copy_n(copy, row_bytes, to);
      ++i;
      continue;
    }
    std::size_t next = i + 1;
    while (next < places_.size() && copy_at(places_[next]) == nullptr) ++next;
    memory_.save(std::span(places_).subspan(i, next - i), to);
    i = next;
  }
  return out;
}

}  // namespace cairn::ps
