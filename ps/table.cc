#include "ps/table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <numeric>

#include "core/memory/bulk_copy.h"
#include "ps/gather.h"

namespace cairn::ps {
namespace {

constexpr std::size_t kLine = 64;

std::int64_t padded_row(std::size_t bytes, std::size_t element) {
  if (bytes > 0 && bytes <= kLine) bytes = std::bit_ceil(bytes);
  return static_cast<std::int64_t>(bytes / element);
}

void fill_element(std::byte* at, std::int64_t count, float value) {
  float* typed = reinterpret_cast<float*>(at);
  std::fill(typed, typed + count, value);
}

void copy_rows(std::byte* out, const std::byte* rows, std::size_t bytes, NextReader next) {
  if (next == NextReader::kAnotherCore)
    copy_bulk(out, rows, bytes);
  else if (bytes > 0)
    std::memcpy(out, rows, bytes);
}

}  // namespace

Table::Table(std::shared_ptr<const VariableSpec> spec, UpdateRule rule, RowRange range,
             std::uint64_t seed)
    : spec_(std::move(spec)), range_(range), seed_(seed) {
  element_ = dtype_bytes(spec_->dtype);
  dim_ = spec_->dim();
  row_bytes_ = static_cast<std::size_t>(dim_) * element_;
  if (spec_->hashed)
    index_.emplace();
  else
    touched_ = TouchedRows(rows());
  lay_out(rule);
  initialize(0, held());
}

std::size_t Table::bytes_for(const VariableSpec& spec, const UpdateRule& rule, RowRange range) {
  constexpr double kMost = 0x1p62;
  if (spec.hashed) return sizeof(Table);
  const auto element = static_cast<double>(dtype_bytes(spec.dtype));
  const double row =
      element * static_cast<double>(spec.dim()) * static_cast<double>(1 + rule_slots(rule).size());
  return static_cast<std::size_t>(std::min(
      kMost, static_cast<double>(range.size()) * (row + TouchedRows::kBytesARow) + sizeof(Table)));
}

std::size_t Table::place_bytes() const {
  return static_cast<std::size_t>(stride_) * element_ + IdIndex::kBytesAnId;
}

std::size_t Table::memory_bytes() const {
  return hashed() ? static_cast<std::size_t>(held() * stride_) * element_ + index_->bytes()
                  : arena_->bytes();
}

// Nothing changes unless the memory is there.
void Table::lay_out(const UpdateRule& rule) {
  const auto slots = static_cast<std::uint32_t>(rule_slots(rule).size());
  const std::int64_t slot_width = cairn::slot_width(rule.kind, dim_);
  const std::size_t whole_row =
      row_bytes_ + static_cast<std::size_t>(slots * slot_width) * element_;
  const auto line = static_cast<std::int64_t>(kLine / element_);
  const std::int64_t stride = planar() ? dim_ : padded_row(whole_row, element_);
  const std::int64_t slot_offset = planar() ? (rows() * dim_ + line - 1) / line * line : dim_;
  arena_ = std::make_shared<Arena>(
      static_cast<std::size_t>(planar() ? slot_offset * (1 + slots) : held() * stride) * element_);
  rule_ = rule;
  slots_ = slots;
  slot_width_ = slot_width;
  stride_ = stride;
  slot_offset_ = slot_offset;
  const std::size_t per_block = whole_row > 0
                                    ? std::max<std::size_t>(1, storage::kBlockBytes / whole_row)
                                    : storage::kBlockBytes;
  block_shift_ = static_cast<int>(std::bit_width(std::bit_floor(per_block)) - 1);
  blocks_ = 0;
  taken_in_.clear();
  least_row_.clear();
  lay_out_blocks();
}

// Blocks for all rows held. New ones are no part of what is frozen.
void Table::lay_out_blocks() {
  const std::int64_t before = blocks_;
  blocks_ = (held() + (std::int64_t{1} << block_shift_) - 1) >> block_shift_;
  taken_in_.resize(static_cast<std::size_t>(blocks_), epoch_);
  if (!hashed()) return;
  least_row_.resize(static_cast<std::size_t>(blocks_), INT64_MAX);
  const auto ids = index_->ids();
  for (std::size_t place = static_cast<std::size_t>(before > 0 ? before - 1 : 0) << block_shift_;
       place < ids.size(); ++place) {
    std::int64_t& least = least_row_[place >> block_shift_];
    least = std::min(least, ids[place]);
  }
}

std::byte* Table::parameters(std::int64_t place) const {
  return arena_->data() + static_cast<std::size_t>(place * stride_) * element_;
}
std::byte* Table::slot(std::int64_t place, std::uint32_t index) const {
  return parameters(place) + static_cast<std::size_t>((index + 1) * slot_offset_) * element_;
}

void Table::initialize(std::int64_t begin, std::int64_t end) {
  if (hashed()) {
    for (std::int64_t place = begin; place < end; ++place)
      initialize_rows(*spec_, seed_, range_.begin + index_->ids()[static_cast<std::size_t>(place)],
                      1, stride_, parameters(place));
  } else if (begin < end) {
    initialize_rows(*spec_, seed_, range_.begin + begin, end - begin, stride_, parameters(begin));
  }
  initialize_slots(begin, end);
}

void Table::initialize_slots(std::int64_t begin, std::int64_t end) {
  const std::vector<SlotSpec> slots = rule_slots(rule_);
  for (std::uint32_t k = 0; k < slots_; ++k)
    for (std::int64_t place = begin; place < end; ++place)
      fill_element(slot(place, k), slot_width_, slots[k].initial_value);
}

void Table::set_rule(const UpdateRule& rule) {
  if (rule.kind == rule_.kind) {
    rule_ = rule;  // the same slots
    return;
  }
  if (frozen_) {  // the writer's blocks are cut for the old layout
    before_write_all();
    all_aside_ = true;
  }
  const std::shared_ptr<Arena> before = arena_;
  const std::int64_t stride = stride_;
  lay_out(rule);
  loans_.clear();  // they are of memory that nobody writes to any more
  for (std::int64_t place = 0; place < held(); ++place)
    std::memcpy(parameters(place),
                before->data() + static_cast<std::size_t>(place * stride) * element_, row_bytes_);
  initialize_slots(0, held());
}

// ---- hashed: rows and their places ----

std::span<const std::int64_t> Table::places(std::span<const std::int64_t> ids) {
  places_.resize(ids.size());
  index_->find(ids, places_.data());
  return places_;
}

// Rows that are not here yet are created, with their initial values.
std::span<const std::int64_t> Table::places_made(std::span<const std::int64_t> ids) {
  places(ids);
  const auto absent = std::count(places_.begin(), places_.end(), IdIndex::kAbsent);
  if (absent == 0) return places_;
  make_room(absent);
  const std::int64_t before = held();
  // the last block gets more rows
  if (before >> block_shift_ < blocks_) before_write({&before, 1});
  std::exception_ptr failure;
  try {
    index_->find_or_add(ids, places_.data());
  } catch (const Error&) {
    failure = std::current_exception();
  }
  lay_out_blocks();
  initialize(before, held());
  if (failure) std::rethrow_exception(failure);
  return places_;
}

void Table::make_room(std::int64_t count) {
  const std::size_t wanted = static_cast<std::size_t>((held() + count) * stride_) * element_;
  if (wanted > arena_->bytes())
    arena_->grow(std::max(wanted, arena_->bytes() + arena_->bytes() / 2));
}

void Table::gather(std::span<const std::int64_t> ids, std::byte* out, NextReader next) {
  if (hashed()) {
    places(ids);
    absent_.clear();
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (places_[i] == IdIndex::kAbsent) {
        absent_.push_back(i);
        places_[i] = 0;
      }
    if (held() > 0)
      gather_rows(arena_->data(), static_cast<std::size_t>(stride_) * element_, row_bytes_, places_,
                  out, next == NextReader::kAnotherCore);
    for (const std::size_t i : absent_)
      initialize_rows(*spec_, seed_, range_.begin + ids[i], 1, dim_, out + i * row_bytes_);
    return;
  }
  if (const auto range = as_range(ids); range.has_value() && stride_ == dim_) {
    copy_rows(out, parameters(range->begin), ids.size() * row_bytes_, next);
    return;
  }
  gather_rows(arena_->data(), static_cast<std::size_t>(stride_) * element_, row_bytes_, ids, out,
              next == NextReader::kAnotherCore);
}

std::shared_ptr<Loan> Table::lend(RowRange rows) {
  if (hashed() || stride_ != dim_ || !arena_->has_pages()) return nullptr;
  const auto bytes = (static_cast<std::size_t>(rows.size()) * row_bytes_ + 7) / 8 * 8;
  const std::byte* const at = parameters(rows.begin);
  if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0) return nullptr;
  std::erase_if(loans_, [](const auto& entry) { return entry.second.expired(); });
  auto loan = std::make_shared<Loan>(std::span(at, bytes), arena_);
  loans_.emplace_back(rows, loan);
  return loan;
}

void Table::before_write_of_lent(std::span<const std::int64_t> places) {
  std::erase_if(loans_, [&](const auto& entry) {
    const RowRange rows = entry.first;
    const auto loan = entry.second.lock();
    const bool written = std::any_of(places.begin(), places.end(), [rows](std::int64_t place) {
      return place >= rows.begin && place < rows.end;
    });
    if (loan != nullptr && written) end_loan(*loan);
    return loan == nullptr || written;
  });
}

void Table::before_write_of_lent() {
  for (const auto& [rows, lent] : loans_)
    if (const auto loan = lent.lock()) end_loan(*loan);
  loans_.clear();
}

// It goes on with a copy.
void Table::end_loan(Loan& loan) {
  const std::span<const std::byte> lent = loan.bytes();
  auto aside = std::make_shared<const std::vector<std::byte>>(lent.begin(), lent.end());
  if (loan.pinned()) arena_->leave_pages(lent.data(), lent.size());
  loan.move_to(*aside, aside);
}

void Table::read_all(std::byte* out, NextReader next) const {
  if (stride_ == dim_) {
    copy_rows(out, arena_->data(), static_cast<std::size_t>(rows()) * row_bytes_, next);
    return;
  }
  for (std::int64_t row = 0; row < rows(); ++row, out += row_bytes_)
    std::memcpy(out, parameters(row), row_bytes_);
}

RowBlock Table::row_block(RowRange places) const {
  return {spec_->dtype, parameters(places.begin), places.size(), dim_, stride_, slot_offset_};
}

void Table::apply(const UpdateRule& rule, float learning_rate, std::span<const std::int64_t> ids,
                  const std::byte* values, bool continues) {
  if (hashed()) ids = places_made(ids);
  if (is_table_rule(rule.kind)) before_write_all();
  before_write(ids);
  if (!is_assignment(rule.kind) && !continues) ++updates_;
  const RuleInputs inputs{learning_rate, std::max<std::int64_t>(updates_, 1)};
  const auto range = is_table_rule(rule.kind) ? std::nullopt : as_range(ids);
  if (!hashed()) {
    if (moves_untouched_rows(rule.kind))
      touched_.add(RowRange{0, rows()});
    else if (range.has_value())
      touched_.add(*range);
    else
      touched_.add(ids);
  }
  if (range.has_value())
    apply_rule_dense(rule, inputs, row_block(*range), values);
  else
    apply_rule(rule, inputs, row_block({0, held()}), ids, values);
}

void Table::apply_dense(const UpdateRule& rule, float learning_rate, const std::byte* values) {
  before_write_all();
  touched_.add(RowRange{0, rows()});
  if (!is_assignment(rule.kind)) ++updates_;
  apply_rule_dense(rule, {learning_rate, std::max<std::int64_t>(updates_, 1)},
                   row_block({0, rows()}), values);
}

}  // namespace cairn::ps
