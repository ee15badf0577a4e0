#include "ps/snapshot/snapshot.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace cairn::ps {

Snapshot::Snapshot(const RowMemory& memory, CopyPool& pool, Order order)
    : memory_(memory),
      places_change_(order == Order::kPlaces),
      by_row_(memory.hashed() && !places_change_),
      written_(memory, pool, places_change_) {
  if (!memory_.hashed()) touched_ = TouchedRows(memory_.rows());
  grew();
}

// ---- called by the table ----

void Snapshot::laid_anew() {
  written_.lay();
  greatest_row_ = seen_ = 0;
  changed_.reset();  // all of it was, or it is not known any more
  grew();
}

// Rows that are made after the freeze lie at places that the checkpoint does not reach.
void Snapshot::grew() {
  written_.grow();
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

Snapshot::Changed Snapshot::changed_among(std::span<const std::int64_t> places) {
  Changed some;
  if (!changed_.has_value()) return some;
  changed_->settle();
  for (const std::int64_t place : places)
    if (changed_->has(place))
      some.since.push_back(place);
    else if (!all_ && in_delta(place))
      some.before.push_back(place);
  return some;
}

void Snapshot::left(std::span<const std::int64_t> places) {
  if (changed_.has_value()) changed_->remove(places);
  if (frozen_ || all_) return;
  for (const std::int64_t place : places)
    if (in_delta(place))
      (*delta_)[static_cast<std::size_t>(place) >> 6] &= ~(std::uint64_t{1} << (place & 63));
}

void Snapshot::moved(std::int64_t from, std::int64_t to) {
  CAIRN_CHECK(!frozen_, "'", memory_.spec().name, "' is frozen");
  if (changed_.has_value()) changed_->move(from, to);
  if (all_ || !in_delta(from)) return;
  (*delta_)[static_cast<std::size_t>(from) >> 6] &= ~(std::uint64_t{1} << (from & 63));
  (*delta_)[static_cast<std::size_t>(to) >> 6] |= std::uint64_t{1} << (to & 63);
}

// A row that the checkpoint does not hold is noted all the same: it is about to be touched, and
// would look then as if the checkpoint held it.
void Snapshot::copy_aside(std::int64_t place) {
  written_.write(place, held(place) ? WrittenRows::Copy::kYes : WrittenRows::Copy::kNo);
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
  const std::int64_t rows = written_.block_rows();
  const std::int64_t end = std::min(frozen_held_, (block + 1) * rows);
  for (std::int64_t place = block * rows; place < end; ++place)
    if (to_take(place)) copy_aside(place);
}

// The writer's blocks are cut for the old layout, and could not be read from the new one. They are
// made now and kept as they will be taken; not in the pool, whose slots have one size a table. A
// table is laid anew when an optimizer first claims it, so that few rows were ever touched.
void Snapshot::before_new_layout() {
  if (!frozen_ || aside_.all) return;
  while (std::optional<storage::StoredRows> rows = take()) {
    aside_.bytes += rows->data.size();
    aside_.blocks.push_back(std::move(*rows));
  }
  aside_.all = true;
}

// ---- how much a write would copy ----

bool Snapshot::would_copy(std::int64_t place) const {
  return to_take(place) && !written_.written(place) && held(place);
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
  const std::int64_t begin = block * written_.block_rows();
  const std::int64_t end = std::min(frozen_held_, begin + written_.block_rows());
  std::size_t rows = 0;
  if (by_row_ || written_.block_rows() < 64 || (end & 63) != 0 || begin < next_row_) {
    for (std::int64_t place = begin; place < end; ++place) rows += would_copy(place) ? 1 : 0;
    return rows;
  }
  // Both are a bit a row here, and words of the one are words of the other.
  for (std::int64_t place = begin; place < end; place += 64)
    rows += static_cast<std::size_t>(std::popcount(held_word(place) & ~written_.word(place)));
  return rows;
}

// ---- called for the checkpoint's writer ----

void Snapshot::freeze(Rows rows, Tracking tracking) {
  thaw();
  touched_.settle();
  choose_rows_of_delta(rows);
  if (tracking != Tracking::kGoesOn) changed_.reset();
  if (tracking == Tracking::kAnew) changed_.emplace(memory_.held());
  begin_freeze();
}

void Snapshot::freeze(Rows rows, Tracking tracking, const std::vector<std::uint64_t>& taken) {
  freeze(rows, tracking);
  if (!delta_.has_value()) {
    delta_ = taken;
    return;
  }
  delta_->resize(taken.size());
  for (std::size_t i = 0; i < taken.size(); ++i) (*delta_)[i] &= taken[i];
}

void Snapshot::begin_freeze() {
  written_.begin();
  frozen_ = true;
  frozen_blocks_ = written_.blocks();
  copies_on_write_ = frozen_blocks_ > 0;
  frozen_held_ = memory_.held();
  next_ = next_row_ = 0;
  if (by_row_) order_.begin(frozen_held_, greatest_row_, delta_.has_value() ? &*delta_ : nullptr);
  const VariableSpec& spec = memory_.spec();
  record_ = {spec.name, spec.dtype,      spec.shape,       memory_.rule(),
             {},        memory_.range(), memory_.updates()};
  for (const SlotSpec& slot : rule_slots(memory_.rule())) record_.slots.emplace_back(slot.name);
}

// The rows that the last freeze held are noted after it, too: its checkpoint may come to nothing,
// and then the next one holds them.
void Snapshot::choose_rows_of_delta(Rows rows) {
  const bool known = knows(rows);
  all_ = !known;
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
  frozen_ = copies_on_write_ = false;
  order_.clear();
  written_.let_copies_go();
  aside_ = {};
}

const storage::TableRecord& Snapshot::record() const {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  return record_;
}

void Snapshot::prepare() {
  constexpr std::int64_t kSlice = 1 << 19;
  if (by_row_) order_.prepare(memory_.rows_held(), kSlice);
}

std::optional<storage::StoredRows> Snapshot::take() {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  if (aside_.all) {
    if (aside_.blocks.empty()) return std::nullopt;
    storage::StoredRows rows = std::move(aside_.blocks.front());
    aside_.blocks.pop_front();
    aside_.bytes -= rows.data.size();
    return rows;
  }
  choose_places();
  std::optional<storage::StoredRows> rows;
  if (!places_.empty()) rows = stored_rows();
  if (next_ == end_of_places())
    next_row_ = INT64_MAX;
  else if (!by_row_)
    next_row_ = next_;
  else
    next_row_ = memory_.row_at(places_.back()) + 1;
  copies_on_write_ = copies_on_write_ && next_row_ != INT64_MAX;
  return rows;
}

// The next block of places whose rows are the checkpoint's, in the order of their rows: a row that
// was written since has a copy, or was none of them before; the others are as they were.
void Snapshot::choose_places() {
  const std::int64_t most = written_.block_rows();
  places_.clear();
  if (by_row_) {
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
    else if (written_.written(next_) ? written_.has_copy(next_) : held(next_))
      places_.push_back(next_);
  }
}

storage::StoredRows Snapshot::saved_layout() const {
  const RowLayout& layout = memory_.layout();
  return {.dtype = memory_.spec().dtype,
          .rule = memory_.rule().kind,
          .slots = layout.slots,
          .dim = layout.dim};
}

// Another row may lie there by now.
std::int64_t Snapshot::row_to_store(std::int64_t place) const {
  return places_change_ && written_.written(place) ? written_.row_of_copy(place)
                                                   : memory_.row_at(place);
}

// Rows `places_` as they were, whose copies go.
storage::StoredRows Snapshot::stored_rows() {
  const RowLayout& layout = memory_.layout();
  storage::StoredRows out = saved_layout();
  if (places_change_)
    std::ranges::sort(places_, {}, [this](std::int64_t place) { return row_to_store(place); });
  const std::int64_t first = row_to_store(places_.front());
  out.first_row = memory_.range().begin + first;
  out.offsets.reserve(places_.size());
  for (const std::int64_t place : places_)
    out.offsets.push_back(static_cast<std::uint64_t>(row_to_store(place) - first));
  const std::size_t row_bytes = layout.saved_row_bytes();
  out.data.resize(places_.size() * row_bytes);
  std::size_t unsaved = 0;  // as they lie, up to the one that is looked at
  const auto save_up_to = [&](std::size_t end) {
    memory_.save(std::span(places_).subspan(unsaved, end - unsaved),
                 out.data.data() + unsaved * row_bytes);
    unsaved = end + 1;
  };
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (written_.take_copy(places_[i], out.data.data() + i * row_bytes)) save_up_to(i);
  save_up_to(places_.size());
  return out;
}

}  // namespace cairn::ps
