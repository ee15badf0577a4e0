// RowCopies: rows of one table, copied aside: slots of one size, each with a row and the slot that
// follows it in its list.
//
//   Thread  one.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/snapshot/copy_pool.h"

namespace cairn::ps {

class RowCopies {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = UINT32_MAX;

  // For rows of `row_bytes`. `pool` outlives it.
  RowCopies(CopyPool& pool, std::size_t row_bytes);
  ~RowCopies() { clear(); }
  RowCopies(const RowCopies&) = delete;
  RowCopies& operator=(const RowCopies&) = delete;

  // A slot for the row at `place` of its block, before `next` in its list; fill its row.
  //   Errors  ResourceExhausted: not enough memory.
  Slot add(std::uint32_t place, Slot next);
  void remove(Slot slot);
  std::byte* row(Slot slot) const { return at(slot) + sizeof(Head); }
  std::uint32_t place(Slot slot) const { return head(slot)->place; }
  Slot next(Slot slot) const { return head(slot)->next; }
  void set_next(Slot slot, Slot next) { head(slot)->next = next; }
  // All slots go, and their memory back to the pool.
  void clear();

  std::size_t held() const { return held_; }
  std::size_t bytes() const { return held_ * row_bytes_; }  // of the rows
  // The pool would have to hand out so much for so many rows more.
  std::size_t bytes_for(std::size_t rows) const;

 private:
  struct Head {
    Slot next;
    std::uint32_t place;
  };
  std::byte* at(Slot slot) const {
    return slabs_[slot / slots_a_slab_] + (slot % slots_a_slab_) * slot_bytes_;
  }
  Head* head(Slot slot) const { return reinterpret_cast<Head*>(at(slot)); }
  std::size_t capacity() const { return slabs_.size() * slots_a_slab_; }

  CopyPool& pool_;
  std::size_t row_bytes_, slot_bytes_, slab_bytes_, slots_a_slab_;
  std::vector<std::byte*> slabs_;
  std::size_t begun_ = 0;  // slots that were ever in use since clear()
  std::size_t held_ = 0;
  Slot free_ = kNone;  // the list of those that were removed
};

}  // namespace cairn::ps
