#include "ps/snapshot/row_copies.h"

namespace cairn::ps {

RowCopies::RowCopies(CopyPool& pool, std::size_t row_bytes)
    : pool_(pool),
      row_bytes_(row_bytes),
      slot_bytes_((sizeof(Head) + row_bytes + 7) / 8 * 8),
      slab_bytes_(std::max(CopyPool::kSlabBytes, slot_bytes_)),
      slots_a_slab_(slab_bytes_ / slot_bytes_) {}

RowCopies::Slot RowCopies::add(std::uint32_t place, Slot next) {
  Slot slot = free_;
  if (slot != kNone) {
    free_ = head(slot)->next;
  } else {
    if (begun_ == capacity()) slabs_.push_back(pool_.take(slab_bytes_));
    slot = static_cast<Slot>(begun_++);
  }
  *head(slot) = {next, place};
  ++held_;
  return slot;
}

// Once a table has no copies left, it gives up its slabs: the writer has passed it, or soon will.
void RowCopies::remove(Slot slot) {
  if (--held_ == 0) return clear();
  head(slot)->next = free_;
  free_ = slot;
}

void RowCopies::clear() {
  for (std::byte* slab : slabs_) pool_.give_back(slab, slab_bytes_);
  slabs_.clear();
  begun_ = held_ = 0;
  free_ = kNone;
}

std::size_t RowCopies::bytes_for(std::size_t rows) const {
  const std::size_t here = capacity() - held_;
  if (rows <= here) return 0;
  return (rows - here + slots_a_slab_ - 1) / slots_a_slab_ * slab_bytes_;
}

}  // namespace cairn::ps
