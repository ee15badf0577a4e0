#include "core/rows/row_memory.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "core/base/error.h"
#include "core/memory/bulk_copy.h"

namespace cairn {
namespace {

void copy_packed(std::byte* out, const std::byte* rows, std::size_t bytes, NextReader next) {
  if (next == NextReader::kAnotherCore)
    copy_bulk(out, rows, bytes);
  else if (bytes > 0)
    std::memcpy(out, rows, bytes);
}

}  // namespace

RowMemory::RowMemory(std::shared_ptr<const VariableSpec> spec, const UpdateRule& rule,
                     RowRange range, std::uint64_t seed)
    : spec_(std::move(spec)),
      rule_(rule),
      range_(range),
      seed_(seed),
      layout_(*spec_, rule, range.size()) {
  if (spec_->hashed) index_.emplace();
  arena_ = std::make_shared<Arena>(layout_.bytes(held()));
  initialize(0, held());
}

std::size_t RowMemory::bytes() const {
  return hashed() ? layout_.bytes(held()) + index_->bytes() : arena_->bytes();
}

std::size_t RowMemory::place_bytes() const { return layout_.stride_bytes() + IdIndex::kBytesAnId; }

// ---- which of these are not here ----

Places RowMemory::find(std::span<const std::int64_t> rows) {
  if (!hashed()) return {rows, rows, {}, as_range(rows)};
  places_.resize(rows.size());
  index_->find(rows, places_.data());
  return places_of(rows);
}

// Answers from places_, which an index has filled. Nearly always every row has a place, so those
// without one are counted, in vectors, and listed only if there are any.
Places RowMemory::places_of(std::span<const std::int64_t> rows) {
  absent_.clear();
  if (std::count(places_.begin(), places_.end(), IdIndex::kAbsent) == 0)
    return {rows, places_, {}, as_range(places_)};
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i] == IdIndex::kAbsent) {
      absent_.push_back(i);
      places_[i] = 0;
    }
  return {rows, places_, absent_, std::nullopt};
}

// An index that finds no memory keeps the rows that came before: they need their values too. Places
// that were let go of are taken first, and lie anywhere.
template <typename Initialize>
void RowMemory::add_absent(std::span<const std::int64_t> rows, Initialize initialize) {
  const std::int64_t before = held();
  std::vector<std::size_t> were_absent;
  if (used() < before) {
    index_->find(rows, places_.data());
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (places_[i] == IdIndex::kAbsent) were_absent.push_back(i);
  }
  std::exception_ptr failure;
  try {
    index_->find_or_add(rows, places_.data());
  } catch (const Error&) {
    failure = std::current_exception();
    index_->find(rows, places_.data());
  }
  for (const std::size_t i : were_absent)
    if (places_[i] >= 0 && places_[i] < before)
      initialize(places_[i], places_[i] + 1, failure != nullptr);
  initialize(before, held(), failure != nullptr);
  if (failure) std::rethrow_exception(failure);
}

Places RowMemory::make(const Places& found) {
  if (found.absent.empty()) return found;
  reserve(held() + static_cast<std::int64_t>(found.absent.size()));
  add_absent(found.rows,
             [this](std::int64_t begin, std::int64_t end, bool) { initialize(begin, end); });
  return places_of(found.rows);
}

// Grows by half, so that the cost of moving is shared by the rows that come.
void RowMemory::reserve(std::int64_t rows) {
  const std::size_t wanted = layout_.bytes(rows);
  if (wanted > arena_->bytes())
    arena_->grow(std::max(wanted, arena_->bytes() + arena_->bytes() / 2));
}

std::vector<std::int64_t> RowMemory::present(std::span<const std::int64_t> rows) {
  const Places found = find(rows);
  std::vector<std::int64_t> places;
  for (std::size_t i = 0, absent = 0; i < rows.size(); ++i)
    if (absent < found.absent.size() && found.absent[absent] == i)
      ++absent;
    else
      places.push_back(found.at[i]);
  return places;
}

std::int64_t RowMemory::drop_last_place() {
  const std::int64_t last = held() - 1, to = index_->drop_last();
  if (to != IdIndex::kAbsent) {
    // A row and its slots lie apart where slots lie in planes.
    std::memcpy(parameters(to), parameters(last), layout_.row_bytes());
    for (std::uint32_t k = 0; k < layout_.slots; ++k)
      std::memcpy(slot(to, k), slot(last, k), layout_.slot_bytes());
  }
  return to;
}

// ---- do it ----

void RowMemory::read(const Places& places, std::byte* out, NextReader next) const {
  const std::size_t row_bytes = layout_.row_bytes();
  if (places.range.has_value() && layout_.packed())
    return copy_packed(out, parameters(places.range->begin), places.at.size() * row_bytes, next);
  // Those that are absent are read from place 0 first, which spares the loop a branch.
  if (held() > 0)
    gather_rows(arena_->data(), layout_.stride_bytes(), row_bytes, places.at, out, next);
  for (const std::size_t i : places.absent)
    initialize_rows(*spec_, seed_, range_.begin + places.rows[i], 1, layout_.dim,
                    out + i * row_bytes);
}

void RowMemory::read_all(std::byte* out, NextReader next) const {
  const std::size_t row_bytes = layout_.row_bytes();
  if (layout_.packed())
    return copy_packed(out, arena_->data(), static_cast<std::size_t>(rows()) * row_bytes, next);
  for (std::int64_t row = 0; row < rows(); ++row, out += row_bytes)
    std::memcpy(out, parameters(row), row_bytes);
}

RowBlock RowMemory::block(RowRange places) const {
  return {spec_->dtype, parameters(places.begin), places.size(),
          layout_.dim,  layout_.stride,           layout_.slot_offset};
}

// The number of updates is the `t` of Adam's bias correction, which begins at 1; slices of one push
// count as one.
RuleInputs RowMemory::count(const UpdateRule& rule, float learning_rate, bool continues) {
  if (!is_assignment(rule.kind) && !continues) ++updates_;
  return {learning_rate, std::max<std::int64_t>(updates_, 1)};
}

void RowMemory::update(const UpdateRule& rule, float learning_rate, const Places& places,
                       const std::byte* values, bool continues) {
  CAIRN_CHECK(places.absent.empty(), "rows of '", spec_->name, "' have no place yet");
  const RuleInputs inputs = count(rule, learning_rate, continues);
  // A table rule is given the whole block, whose other rows change too.
  if (places.range.has_value() && !is_table_rule(rule.kind))
    apply_rule_dense(rule, inputs, block(*places.range), values);
  else
    apply_rule(rule, inputs, block({0, held()}), places.at, values);
}

void RowMemory::update_all(const UpdateRule& rule, float learning_rate, const std::byte* values) {
  apply_rule_dense(rule, count(rule, learning_rate, false), block({0, rows()}), values);
}

// ---- layout ----

void RowMemory::initialize(std::int64_t begin, std::int64_t end) {
  if (hashed()) {
    for (std::int64_t place = begin; place < end; ++place)
      initialize_rows(*spec_, seed_, range_.begin + row_at(place), 1, layout_.stride,
                      parameters(place));
  } else if (begin < end) {
    initialize_rows(*spec_, seed_, range_.begin + begin, end - begin, layout_.stride,
                    parameters(begin));
  }
  initialize_slots(begin, end);
}

// Only optimizers have slots, and they want float32.
void RowMemory::initialize_slots(std::int64_t begin, std::int64_t end, std::uint32_t first) {
  if (first >= layout_.slots) return;
  const std::vector<SlotSpec> slots = rule_slots(rule_);
  for (std::uint32_t k = first; k < layout_.slots; ++k)
    for (std::int64_t place = begin; place < end; ++place)
      std::fill_n(reinterpret_cast<float*>(slot(place, k)), layout_.slot_width,
                  slots[k].initial_value);
}

// Another rule means other slots, and so another layout: the rows are copied into an arena of that
// layout, and readers that were lent the old one keep it.
void RowMemory::set_rule(const UpdateRule& rule) {
  if (same_slots(rule, rule_)) {
    rule_ = rule;  // the same slots
    return;
  }
  const RowLayout layout(*spec_, rule, rows());
  auto arena = std::make_shared<Arena>(layout.bytes(held()));
  const std::size_t row_bytes = layout.row_bytes();
  for (std::int64_t place = 0; place < held(); ++place)
    std::memcpy(arena->data() + static_cast<std::size_t>(place) * layout.stride_bytes(),
                parameters(place), row_bytes);
  arena_ = std::move(arena);
  layout_ = layout;
  rule_ = rule;
  initialize_slots(0, held());
}

void RowMemory::reset() {
  updates_ = 0;
  if (!hashed()) return initialize(0, rows());
  arena_ = std::make_shared<Arena>(0);
  index_->clear();
}

// ---- saving, restoring, lending ----

std::span<const std::int64_t> RowMemory::rows_held() const {
  return hashed() && index_->size() > 0 ? index_->ids() : std::span<const std::int64_t>();
}

std::byte* RowMemory::save_row(std::int64_t place, std::byte* out) const {
  const std::size_t row_bytes = layout_.row_bytes(), slot_bytes = layout_.slot_bytes();
  std::memcpy(out, parameters(place), row_bytes);
  out += row_bytes;
  for (std::uint32_t k = 0; k < layout_.slots; ++k, out += slot_bytes)
    std::memcpy(out, slot(place, k), slot_bytes);
  return out;
}

void RowMemory::save(std::span<const std::int64_t> places, std::byte* out) const {
  for (const std::int64_t place : places) out = save_row(place, out);
}

void RowMemory::save(RowRange places, std::byte* out) const {
  for (std::int64_t place = places.begin; place < places.end; ++place) out = save_row(place, out);
}

void RowMemory::restore(std::int64_t place, const std::byte* saved, std::uint32_t slots,
                        Take what) {
  const std::size_t row_bytes = layout_.row_bytes(), slot_bytes = layout_.slot_bytes();
  if (what == Take::kRowsAndSlots) std::memcpy(parameters(place), saved, row_bytes);
  for (std::uint32_t k = 0; k < slots; ++k)
    std::memcpy(slot(place, k), saved + row_bytes + k * slot_bytes, slot_bytes);
}

void RowMemory::expect(std::int64_t rows) {
  if (hashed()) index_->reserve(rows);
}

// Initial values would be overwritten at once, and drawing them takes longer than all else.
Places RowMemory::places_to_restore(std::span<const std::int64_t> rows, std::uint32_t slots) {
  if (!hashed()) return find(rows);
  reserve(held() + static_cast<std::int64_t>(rows.size()));
  places_.resize(rows.size());
  // Without memory for all, those that came before stay, and nobody is going to restore them.
  add_absent(rows, [&](std::int64_t begin, std::int64_t end, bool failed) {
    failed ? initialize(begin, end) : initialize_slots(begin, end, slots);
  });
  return places_of(rows);
}

// Rows that lie in memory as they were saved, and consecutively, are one copy: all of a block,
// mostly.
void RowMemory::restore(const Places& places, const std::byte* saved, std::size_t saved_bytes,
                        std::uint32_t slots) {
  const bool as_saved =
      !layout_.planes && slots == layout_.slots && layout_.stride_bytes() == saved_bytes;
  const std::span<const std::int64_t> at = places.at;
  for (std::size_t i = 0; i < at.size();) {
    std::size_t end = i + 1;
    if (!as_saved) {
      restore(at[i], saved + i * saved_bytes, slots);
    } else {
      while (end < at.size() && at[end] == at[end - 1] + 1) ++end;
      std::memcpy(parameters(at[i]), saved + i * saved_bytes, (end - i) * saved_bytes);
    }
    i = end;
  }
}

}  // namespace cairn
