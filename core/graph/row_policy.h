// RowPolicy: which rows of a hashed variable come to be, and which go again for good.
//
//   Admission  A row that no update of an optimizer has made yet reads as its initial value. Where
//   not every row is admitted at once, the gradients of those that are not are dropped, and counted
//   (`dropped_rows` in a ps's status). An assignment, or scatter_...(), always makes its rows.
//   Eviction   Rows go when there are too many, with age, or by Variable::evict(). One that goes
//   reads as its initial value from then on, slots and all; one that comes again begins anew, and
//   is admitted by what is still remembered of how often it was seen.
//   Age is counted in updates: the optimizer's updates of the part that the row lies in.
//   Source  counting admission and the age and norm of rows: as in DeepRec's embedding variables
//           ("Embedding Variable Filter" and "Eviction" of its documentation). Which row gives way
//           when there are too many: core/rows/tiny_lfu.h.
#pragma once
#include <cstdint>
#include <string>

namespace cairn {

struct RowPolicy {
  // A row is made by the update that names it for about this many times of late: 1 to 16. What is
  // seen is counted by a sketch (core/rows/frequency_sketch.h) of `sketch_rows` counters a part,
  // which errs on the side of admitting.
  std::uint32_t admit_after = 1;
  std::int64_t sketch_rows = 1 << 20;
  // Or by each update that names it with this probability, in (0, 1].
  double admit_probability = 1;
  // So many rows of the whole variable at most, of which each part has its share by the numbers
  // that it may have. When there are more, those go that are asked for least. 0: no bound.
  std::int64_t rows_max = 0;
  // A row goes that no update has named for so many updates of its part. 0: none does.
  std::int64_t steps_to_live = 0;
  // But not one whose parameters have at least this L2 norm. 0: the norm does not matter.
  double spared_norm = 0;
  // Rows may go by Variable::evict(), which the other reasons to go imply.
  bool evictable = false;

  bool admits_all() const { return admit_after <= 1 && admit_probability >= 1; }
  bool evicts() const { return rows_max > 0 || steps_to_live > 0 || evictable; }
  bool keeps_all() const { return admits_all() && !evicts(); }
  bool operator==(const RowPolicy&) const = default;
};

// Why it cannot be: empty if it can.
std::string why_not(const RowPolicy& policy);

}  // namespace cairn
