// The rows as they were at the mark: frozen in constant time, copied before they are written, taken
// block by block; and rows put back from a checkpoint.
#include <algorithm>
#include <cstring>

#include "ps/table.h"

namespace cairn::ps {

void Table::before_write(std::span<const std::int64_t> places) {
  if (!loans_.empty()) before_write_of_lent(places);
  if (!frozen_) return;
  for (const std::int64_t place : places) {
    const std::int64_t block = place >> block_shift_;
    if (taken_in_[static_cast<std::size_t>(block)] != epoch_) copy_aside(block);
  }
}

void Table::before_write_all() {
  before_write_of_lent();
  if (frozen_)
    for (std::int64_t block = 0; block < blocks_; ++block)
      if (taken_in_[static_cast<std::size_t>(block)] != epoch_) copy_aside(block);
}

void Table::freeze() {
  thaw();
  touched_.settle();
  ++epoch_;
  frozen_ = true;
  frozen_blocks_ = blocks_;
  frozen_held_ = held();
  if (hashed()) {
    frozen_order_.resize(static_cast<std::size_t>(blocks_));
    std::iota(frozen_order_.begin(), frozen_order_.end(), std::int64_t{0});
    std::sort(frozen_order_.begin(), frozen_order_.end(), [this](std::int64_t a, std::int64_t b) {
      return least_row_[static_cast<std::size_t>(a)] < least_row_[static_cast<std::size_t>(b)];
    });
  }
  frozen_record_ = {spec_->name, spec_->dtype, spec_->shape, rule_, {}, range_, updates_, hashed()};
  for (const SlotSpec& slot : rule_slots(rule_)) frozen_record_.slots.emplace_back(slot.name);
}

void Table::thaw() {
  frozen_ = all_aside_ = false;
  aside_.clear();
  copied_bytes_ = 0;
}

storage::TableRecord Table::frozen_record() const {
  CAIRN_CHECK(frozen_, "'", spec_->name, "' is not frozen");
  return frozen_record_;
}

void Table::copy_aside(std::int64_t index) {
  taken_in_[static_cast<std::size_t>(index)] = epoch_;
  storage::StoredRows rows = stored_rows(index);
  if (rows.offsets.empty()) return;
  copied_bytes_ += rows.data.size();
  aside_.emplace(index, std::move(rows));
}

std::optional<storage::StoredRows> Table::take_frozen(std::int64_t nth) {
  CAIRN_CHECK(frozen_ && nth < frozen_blocks_, "block ", nth, " of '", spec_->name, "'");
  const std::int64_t index = hashed() ? frozen_order_[static_cast<std::size_t>(nth)] : nth;
  storage::StoredRows rows;
  if (all_aside_ || taken_in_[static_cast<std::size_t>(index)] == epoch_) {
    auto copy = aside_.extract(index);
    if (copy.empty()) return std::nullopt;
    copied_bytes_ -= copy.mapped().data.size();
    rows = std::move(copy.mapped());
  } else {
    taken_in_[static_cast<std::size_t>(index)] = epoch_;
    rows = stored_rows(index);
  }
  if (rows.offsets.empty()) return std::nullopt;
  return rows;
}

storage::StoredRows Table::stored_rows(std::int64_t index) const {
  const std::int64_t begin = index << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  std::vector<std::int64_t> places;
  for (std::int64_t place = begin; place < end; ++place)
    if (hashed() || touched_.has(place)) places.push_back(place);
  const auto row_at = [this](std::int64_t place) {
    return range_.begin + (hashed() ? index_->ids()[static_cast<std::size_t>(place)] : place);
  };
  if (hashed())
    std::sort(places.begin(), places.end(),
              [&](std::int64_t a, std::int64_t b) { return row_at(a) < row_at(b); });
  storage::StoredRows out{.dtype = spec_->dtype, .rule = rule_.kind, .slots = slots_, .dim = dim_};
  if (places.empty()) return out;
  out.first_row = row_at(places.front());
  out.offsets.reserve(places.size());
  out.data.resize(places.size() * out.row_bytes());
  std::byte* to = out.data.data();
  for (const std::int64_t place : places) {
    out.offsets.push_back(static_cast<std::uint64_t>(row_at(place) - out.first_row));
    std::memcpy(to, parameters(place), row_bytes_);
    to += row_bytes_;
    for (std::uint32_t k = 0; k < slots_; ++k, to += slot_bytes())
      std::memcpy(to, slot(place, k), slot_bytes());
  }
  return out;
}

void Table::reset() {
  updates_ = 0;
  if (hashed()) {
    if (held() == 0) return;
    CAIRN_CHECK(!frozen_, "'", spec_->name, "' is frozen");
    index_->clear();
    lay_out(rule_);
    return;
  }
  if (touched_.none()) return;
  before_write_all();
  touched_.clear();
  initialize(0, rows());
}

std::int64_t Table::put(const storage::StoredRows& stored) {
  if (stored.dtype != spec_->dtype || stored.dim != dim_)
    throw DataLossError(str("the checkpoint's rows of '", spec_->name, "' have ", stored.dim,
                            " elements of ", dtype_name(stored.dtype), ", those here ", dim_,
                            " of ", dtype_name(spec_->dtype)));
  const std::uint32_t slots = stored.rule == rule_.kind ? std::min(stored.slots, slots_) : 0;
  std::vector<std::int64_t> here;
  std::vector<const std::byte*> from;
  for (std::size_t i = 0; i < stored.offsets.size(); ++i) {
    const std::int64_t row =
        stored.first_row + static_cast<std::int64_t>(stored.offsets[i]) - range_.begin;
    if (row < 0 || row >= rows()) continue;
    here.push_back(row);
    from.push_back(stored.data.data() + i * stored.row_bytes());
  }
  const std::span<const std::int64_t> places = hashed() ? places_made(here) : here;
  before_write(places);
  if (!hashed()) touched_.add(places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::memcpy(parameters(places[i]), from[i], row_bytes_);
    for (std::uint32_t k = 0; k < slots; ++k)
      std::memcpy(slot(places[i], k), from[i] + row_bytes_ + k * slot_bytes(), slot_bytes());
  }
  return static_cast<std::int64_t>(places.size());
}

}  // namespace cairn::ps
