#include "core/rows/row_turnover.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"

namespace cairn {
namespace {

// A round of the hand takes this part of the time that rows live.
constexpr std::int64_t kRounds = 8;
// A sketch that is filled further takes rows that come once for others (bench/notebook.md).
constexpr std::size_t kUsesOfASketchRow = 1;

std::uint64_t mixed_row(std::int64_t row) { return mix_bits(static_cast<std::uint64_t>(row)); }

// The part's share of the rows that the variable may have.
std::int64_t share_of(const RowMemory& memory, std::int64_t rows_max) {
  if (rows_max == 0) return 0;
  const double share = static_cast<double>(memory.rows()) /
                       static_cast<double>(std::max<std::int64_t>(memory.spec().rows(), 1));
  return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(rows_max)));
}

}  // namespace

RowTurnover::RowTurnover(const RowMemory& memory)
    : memory_(memory),
      policy_(memory.spec().policy),
      rows_max_(share_of(memory, policy_.rows_max)) {
  reset();
}

void RowTurnover::reset() {
  dropped_ = 0;
  updated_.clear();
  hand_ = 0;
  looked_ = 0;
  // More counters than ids are of no use. All parts have as many, so that any takes another's over.
  const std::int64_t counters = std::min(policy_.sketch_rows, memory_.spec().rows());
  if (policy_.admit_after > 1)
    sketch_.emplace(static_cast<std::size_t>(counters), kUsesOfASketchRow);
  if (rows_max_ > 0)
    lfu_.emplace(static_cast<TinyLfu::Slot>(std::min(rows_max_, IdIndex::kIdsMax - 1)));
}

// ---- an update ----

// The same row is drawn for anew with each update.
bool RowTurnover::admits(std::int64_t row) {
  if (policy_.admit_after > 1) {
    const std::uint64_t hash = mixed_row(row);
    sketch_->add(hash);
    return sketch_->count(hash) >= policy_.admit_after;
  }
  const std::uint64_t drawn = random_key(mixed_row(memory_.range().begin + row),
                                         static_cast<std::uint64_t>(memory_.updates()));
  return static_cast<double>(drawn >> 11) * 0x1p-53 < policy_.admit_probability;
}

RowTurnover::Rows RowTurnover::admit(const Places& found, const std::byte* values) {
  if (policy_.admits_all() || found.absent.empty()) return {found.rows, values};
  const std::size_t row_bytes = memory_.layout().row_bytes();
  rows_.clear();
  values_.resize(found.rows.size() * row_bytes);
  for (std::size_t i = 0, absent = 0; i < found.rows.size(); ++i) {
    const bool is_absent = absent < found.absent.size() && found.absent[absent] == i;
    absent += is_absent ? 1 : 0;
    if (is_absent && !admits(found.rows[i])) {
      ++dropped_;
      continue;
    }
    std::memcpy(values_.data() + rows_.size() * row_bytes, values + i * row_bytes, row_bytes);
    rows_.push_back(found.rows[i]);
  }
  return {rows_, values_.data()};
}

void RowTurnover::update(std::span<const std::int64_t> places) {
  if (!policy_.evicts()) return;
  const auto held = static_cast<std::size_t>(memory_.held());
  if (updated_.size() < held) updated_.resize(held);
  for (const std::int64_t place : places) {
    updated_[static_cast<std::size_t>(place)] = now();
    if (!lfu_.has_value()) continue;
    const auto slot = static_cast<TinyLfu::Slot>(place);
    const std::uint64_t hash = mixed_row(memory_.row_at(place));
    lfu_->holds(slot) ? lfu_->use(slot, hash) : lfu_->enter(slot, hash);
  }
}

// ---- rows that go ----

bool RowTurnover::expired(std::int64_t place) const {
  if (memory_.row_at(place) == IdIndex::kFree) return false;
  const std::uint32_t age = now() - updated_[static_cast<std::size_t>(place)];
  if (age < static_cast<std::uint64_t>(policy_.steps_to_live)) return false;
  if (policy_.spared_norm == 0) return true;
  const RowBlock row = memory_.block({place, place + 1});
  double squares = 0;
  for (std::int64_t i = 0; i < row.dim; ++i) {
    const double x = reinterpret_cast<const float*>(row.base)[i];
    squares += x * x;
  }
  return std::sqrt(squares) < policy_.spared_norm;
}

std::vector<std::int64_t> RowTurnover::choose(std::size_t most) {
  std::vector<std::int64_t> places;
  if (policy_.steps_to_live > 0) {
    const std::int64_t held = std::min(memory_.held(), static_cast<std::int64_t>(updated_.size()));
    if (looked_ != now()) to_look_at_ = std::min(held, held * kRounds / policy_.steps_to_live + 1);
    looked_ = now();
    for (; to_look_at_ > 0 && places.size() < most; --to_look_at_) {
      if (hand_ >= held) hand_ = 0;
      if (expired(hand_)) places.push_back(hand_);
      ++hand_;
    }
  }
  if (!lfu_.has_value()) return places;
  for (const std::int64_t place : places) lfu_->remove(static_cast<TinyLfu::Slot>(place));
  const auto left = memory_.used() - static_cast<std::int64_t>(places.size());
  for (std::int64_t i = left; i > rows_max_ && places.size() < most; --i) {
    const std::optional<TinyLfu::Slot> slot = lfu_->choose();
    if (!slot.has_value()) break;
    lfu_->remove(*slot);
    places.push_back(*slot);
  }
  return places;
}

void RowTurnover::stay(std::span<const std::int64_t> places) {
  if (!lfu_.has_value()) return;
  for (const std::int64_t place : places)
    lfu_->enter(static_cast<TinyLfu::Slot>(place), mixed_row(memory_.row_at(place)));
}

void RowTurnover::moved(std::int64_t from, std::int64_t to) {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  if (updated_.size() > std::max(a, b)) updated_[b] = updated_[a];
  if (lfu_.has_value())
    lfu_->move(static_cast<TinyLfu::Slot>(from), static_cast<TinyLfu::Slot>(to));
}

void RowTurnover::restore(std::uint64_t dropped, std::string_view sketch) {
  dropped_ += dropped;
  if (sketch_.has_value() && !sketch.empty()) sketch_->add_saved(sketch);
}

std::size_t RowTurnover::bytes() const {
  return updated_.capacity() * sizeof(std::uint32_t) + (lfu_.has_value() ? lfu_->bytes() : 0) +
         (sketch_.has_value() ? sketch_->bytes() : 0);
}

}  // namespace cairn
