// TinyLfu: which rows stay in a memory that holds about so many of them, W-TinyLFU.
//
//   A row enters through a small window, whose rows leave in the order of their last use. What
//   leaves the window stays only if it was asked for more often of late than the row that the main
//   part would give up for it, so that ids that come once, or in a scan, pass by. The main part is
//   a segmented LRU: rows enter it on probation, and are protected from their next use on.
//   Uses are far more frequent than rows that leave. So a use sets a mark, and the lists are put in
//   order when a row has to leave: one that is marked goes to their newest end instead ("second
//   chance").
//   Source  as FrequencySketch; segmented LRU: Karedla, Love, Wherry, "Caching strategies to
//           improve disk system performance", IEEE Computer 27(3), 1994. Second
//           chance: Corbató, "A paging experiment with the Multics system", 1968.
//   Memory  18 bytes per slot up to the highest in use, and the sketch's 8 to 16.
//   Thread  one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/rows/frequency_sketch.h"

namespace cairn {

class TinyLfu {
 public:
  using Slot = std::uint32_t;
  // For a memory of `rows`, at least 1; more may be in it for a while. `window_share` of them are
  // the window: 1 makes it a plain LRU.
  explicit TinyLfu(Slot rows, double window_share = 0.01);

  // A row enters this slot, which is free, and counts as used. `hash` is its id's, well mixed,
  // here and below.
  void enter(Slot slot, std::uint64_t hash);
  // The row in this slot is used.
  void use(Slot slot, std::uint64_t hash);
  // Asks for the memory that use() is going to need.
  void prefetch(Slot slot, std::uint64_t hash) const;
  // The row that is to leave, if one has to: remove() it then. Rows for which `may_leave` says no
  // stay, as those that a request needs.
  using MayLeave = std::function<bool(Slot)>;
  // Nothing: none of those looked at may leave, or there is no row.
  std::optional<Slot> choose(const MayLeave& may_leave = {});
  // The row in a slot lies in another one now, which is free.
  void move(Slot from, Slot to);
  // The row in this slot goes, and the slot is free.
  void remove(Slot slot);

  bool holds(Slot slot) const { return slot < parts_.size() && parts_[slot] != Part::kFree; }
  Slot used() const;  // slots
  std::size_t bytes() const;

 private:
  enum class Part : std::uint8_t { kFree, kWindow, kProbation, kProtected };
  static constexpr Slot kNone = ~Slot{0};
  struct Node {
    Slot newer = kNone, older = kNone;
    std::uint64_t hash = 0;
  };
  struct List {
    Slot newest = kNone, oldest = kNone, size = 0, size_max = 0;
  };

  List& list(Part part) { return lists_[static_cast<std::size_t>(part)]; }
  const List& list(Part part) const { return lists_[static_cast<std::size_t>(part)]; }
  void push(Part part, Slot slot);
  void unlink(Slot slot);
  void renew(Slot slot);
  Slot oldest(Part part, const MayLeave& may_leave);

  std::vector<Node> nodes_;
  std::vector<Part> parts_;
  std::vector<std::uint8_t> was_used_;
  std::array<List, 4> lists_;
  FrequencySketch sketch_;
};

}  // namespace cairn
