#include "core/rows/row_turnover.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"

namespace cairn {
namespace {

// A round of the hand takes this part of the time that rows live.
constexpr std::int64_t kRounds = 8, kRoundsElsewhere = 2;
// So many rows that are elsewhere are looked at together: no fewer, if there are as many, as each
// look has its cost, and no more, as they are in memory meanwhile.
constexpr std::int64_t kLooksMin = 64, kLooksMax = 4096;
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
  looked_ = due_at_ = 0;
  due_ = 0;
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
  return expired(updated(place),
                 reinterpret_cast<const std::byte*>(memory_.block({place, place + 1}).base));
}

// The parameters need not be aligned.
bool RowTurnover::expired(std::uint32_t updated, const std::byte* parameters) const {
  const std::uint32_t age = now() - updated;
  if (policy_.steps_to_live == 0 || age < static_cast<std::uint64_t>(policy_.steps_to_live))
    return false;
  if (policy_.spared_norm == 0) return true;
  double squares = 0;
  for (std::int64_t i = 0; i < memory_.layout().dim; ++i) {
    float x;
    std::memcpy(&x, parameters + static_cast<std::size_t>(i) * sizeof x, sizeof x);
    squares += static_cast<double>(x) * static_cast<double>(x);
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
  if (lfu_.has_value() && lfu_->holds(static_cast<TinyLfu::Slot>(from)))
    lfu_->move(static_cast<TinyLfu::Slot>(from), static_cast<TinyLfu::Slot>(to));
}

// ---- rows that are elsewhere ----

std::uint32_t RowTurnover::updated(std::int64_t place) const {
  return static_cast<std::size_t>(place) < updated_.size()
             ? updated_[static_cast<std::size_t>(place)]
             : now();
}

void RowTurnover::left(std::span<const std::int64_t> places) {
  if (!lfu_.has_value()) return;
  for (const std::int64_t place : places)
    if (lfu_->holds(static_cast<TinyLfu::Slot>(place)))
      lfu_->remove(static_cast<TinyLfu::Slot>(place));
}

void RowTurnover::came(std::span<const std::int64_t> places,
                       std::span<const std::uint32_t> updated) {
  update(places);
  for (std::size_t i = 0; i < places.size(); ++i)
    updated_[static_cast<std::size_t>(places[i])] = updated[i];
}

std::int64_t RowTurnover::surplus(std::int64_t elsewhere) const {
  if (rows_max_ == 0) return 0;
  return std::clamp<std::int64_t>(memory_.used() + elsewhere - rows_max_, 0, elsewhere);
}

std::size_t RowTurnover::to_look_at(std::int64_t elsewhere) {
  std::int64_t looks = 0;
  if (policy_.steps_to_live > 0) {
    const double passed = static_cast<double>(now() - due_at_) * kRoundsElsewhere /
                          static_cast<double>(policy_.steps_to_live);
    due_ = std::min(static_cast<double>(elsewhere), due_ + passed * static_cast<double>(elsewhere));
    due_at_ = now();
    if (due_ >= static_cast<double>(std::min(kLooksMin, elsewhere)))
      looks = std::min(static_cast<std::int64_t>(due_), kLooksMax);
    due_ -= static_cast<double>(looks);
  }
  if (const std::int64_t more = surplus(elsewhere); more > 0)
    looks = std::max(looks, std::clamp(4 * more, kLooksMin, kLooksMax));
  return static_cast<std::size_t>(looks);
}

std::vector<std::size_t> RowTurnover::choose(std::span<const Elsewhere> rows,
                                             std::int64_t elsewhere) const {
  std::vector<std::size_t> going, left;
  for (std::size_t i = 0; i < rows.size(); ++i)
    (expired(rows[i].updated, rows[i].parameters) ? going : left).push_back(i);
  // The oldest of a sample are old ones only if it is larger than what is taken of it.
  const auto looked = static_cast<std::int64_t>(rows.size());
  std::int64_t more = surplus(elsewhere) - static_cast<std::int64_t>(going.size());
  if (looked < elsewhere) more = std::min(more, looked / 2);
  if (more <= 0) return going;
  const auto oldest = [&](std::size_t one, std::size_t other) {
    return now() - rows[one].updated > now() - rows[other].updated;
  };
  const auto count = std::min(left.size(), static_cast<std::size_t>(more));
  std::partial_sort(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count), left.end(),
                    oldest);
  going.insert(going.end(), left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count));
  std::ranges::sort(going);
  return going;
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
