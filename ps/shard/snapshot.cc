#include "ps/shard/snapshot.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/error.h"

namespace cairn::ps {

Snapshot::Snapshot(const RowMemory& memory) : memory_(memory) {
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
  blocks_ = 0;
  taken_in_.clear();
  least_row_.clear();
  grew();
}

// A block that is made after the freeze is entered as taken, since it is in no checkpoint that is
// being written.
void Snapshot::grew() {
  const std::int64_t before = blocks_;
  blocks_ = (memory_.held() + (std::int64_t{1} << block_shift_) - 1) >> block_shift_;
  taken_in_.resize(static_cast<std::size_t>(blocks_), epoch_);
  if (!memory_.hashed()) return;
  least_row_.resize(static_cast<std::size_t>(blocks_), INT64_MAX);
  // The last of the blocks that were there may have got more rows.
  const auto rows = memory_.rows_held();
  for (std::size_t place = static_cast<std::size_t>(before > 0 ? before - 1 : 0) << block_shift_;
       place < rows.size(); ++place) {
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

// A block is copied at its first write after the freeze, and never again in the same epoch.
void Snapshot::copy_blocks_of(std::span<const std::int64_t> places) {
  for (const std::int64_t place : places)
    if (const std::int64_t block = place >> block_shift_; !taken(block)) copy_aside(block);
}

void Snapshot::before_write_all() {
  if (!frozen_) return;
  for (std::int64_t block = 0; block < blocks_; ++block)
    if (!taken(block)) copy_aside(block);
}

void Snapshot::copy_aside(std::int64_t block) {
  taken_in_[static_cast<std::size_t>(block)] = epoch_;
  storage::StoredRows rows = stored_rows(block);
  if (rows.offsets.empty()) return;
  copied_bytes_ += rows.data.size();
  aside_.emplace(block, std::move(rows));
}

// The writer's blocks are cut for the old layout, and could not be read from the new one.
void Snapshot::before_new_layout() {
  if (!frozen_) return;
  before_write_all();
  all_aside_ = true;
}

// ---- called for the checkpoint's writer ----

void Snapshot::freeze() {
  thaw();
  touched_.settle();
  // The number stands in each block that was taken or copied: to freeze a table is to raise it, in
  // constant time, instead of clearing a flag in every block.
  ++epoch_;
  frozen_ = true;
  frozen_blocks_ = blocks_;
  frozen_held_ = memory_.held();
  // The rows of a hashed table lie in the order in which they were made. The checkpoint's keys have
  // to ascend, so the blocks are handed out in the order of their least row.
  if (memory_.hashed()) {
    frozen_order_.resize(static_cast<std::size_t>(blocks_));
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
  frozen_ = all_aside_ = false;
  aside_.clear();
  copied_bytes_ = 0;
}

const storage::TableRecord& Snapshot::record() const {
  CAIRN_CHECK(frozen_, "'", memory_.spec().name, "' is not frozen");
  return record_;
}

std::optional<storage::StoredRows> Snapshot::take(std::int64_t nth) {
  CAIRN_CHECK(frozen_ && nth < frozen_blocks_, "block ", nth, " of '", memory_.spec().name, "'");
  const std::int64_t block = memory_.hashed() ? frozen_order_[static_cast<std::size_t>(nth)] : nth;
  storage::StoredRows rows;
  if (all_aside_ || taken(block)) {
    auto copy = aside_.extract(block);
    if (copy.empty()) return std::nullopt;
    copied_bytes_ -= copy.mapped().data.size();
    rows = std::move(copy.mapped());
  } else {
    taken_in_[static_cast<std::size_t>(block)] = epoch_;
    rows = stored_rows(block);
  }
  if (rows.offsets.empty()) return std::nullopt;
  return rows;
}

// The rows of the block as they are now, in the order of their numbers.
storage::StoredRows Snapshot::stored_rows(std::int64_t block) const {
  const std::int64_t begin = block << block_shift_;
  const std::int64_t end = std::min(frozen_held_, begin + (std::int64_t{1} << block_shift_));
  std::vector<std::int64_t> places;
  for (std::int64_t place = begin; place < end; ++place)
    if (memory_.hashed() || touched_.has(place)) places.push_back(place);
  if (memory_.hashed())
    std::sort(places.begin(), places.end(), [this](std::int64_t a, std::int64_t b) {
      return memory_.row_at(a) < memory_.row_at(b);
    });
  const RowLayout& layout = memory_.layout();
  storage::StoredRows out{.dtype = memory_.spec().dtype,
                          .rule = memory_.rule().kind,
                          .slots = layout.slots,
                          .dim = layout.dim};
  if (places.empty()) return out;
  const std::int64_t first = memory_.row_at(places.front());
  out.first_row = memory_.range().begin + first;
  out.offsets.reserve(places.size());
  for (const std::int64_t place : places)
    out.offsets.push_back(static_cast<std::uint64_t>(memory_.row_at(place) - first));
  out.data.resize(places.size() * layout.saved_row_bytes());
  memory_.save(places, out.data.data());
  return out;
}

}  // namespace cairn::ps
