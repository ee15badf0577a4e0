// RowTurnover: carries out a variable's RowPolicy on the rows that a RowMemory holds: which rows an
// update may make, and which go.
//
//   What it decides follows from the updates alone, in their order, so that copies of a variable
//   that see the same updates decide alike. After a restore all rows count as just updated.
//   Age     a hand goes round over the places, a whole round in an eighth of `steps_to_live`: a row
//           goes up to so much later.
//   Memory  4 bytes a place, with `rows_max` 30 to 40 more, and the sketch: 8 to 16 bytes for each
//           of `sketch_rows`.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/row_policy.h"
#include "core/rows/frequency_sketch.h"
#include "core/rows/row_memory.h"
#include "core/rows/tiny_lfu.h"

namespace cairn {

class RowTurnover {
 public:
  // `memory` holds the rows, and outlives this. Its variable has a policy that does not keep all.
  explicit RowTurnover(const RowMemory& memory);

  // ---- an update ----
  // Rows of an update, with their values packed beside them.
  struct Rows {
    std::span<const std::int64_t> rows;
    const std::byte* values;
  };
  // Without those that are not there, as `found` says, and are not admitted: their gradients are
  // dropped. Good until the next call.
  Rows admit(const Places& found, const std::byte* values);
  // The rows at these places, all there, are being updated.
  void update(std::span<const std::int64_t> places);

  // ---- rows that go ----
  // Some places, `most` at most, whose rows are to go: the caller lets go of them, or they stay().
  std::vector<std::int64_t> choose(std::size_t most);
  void stay(std::span<const std::int64_t> places);
  // The row at one place lies at another one now, which was free.
  void moved(std::int64_t from, std::int64_t to);
  // No row is there any more.
  void reset();

  // ---- what checkpoints hold ----
  std::uint64_t dropped() const { return dropped_; }  // gradients
  std::string saved() const { return sketch_.has_value() ? sketch_->saved() : std::string(); }
  // Adds what a part of the variable had seen.
  //   Errors  DataLoss: it is not a sketch's.
  void restore(std::uint64_t dropped, std::string_view sketch);
  std::size_t bytes() const;

 private:
  bool admits(std::int64_t row);
  bool expired(std::int64_t place) const;
  std::uint32_t now() const { return static_cast<std::uint32_t>(memory_.updates()); }

  const RowMemory& memory_;
  const RowPolicy policy_;
  std::int64_t rows_max_ = 0;  // of this part
  std::optional<FrequencySketch> sketch_;
  std::uint64_t dropped_ = 0;
  std::vector<std::uint32_t> updated_;  // by place: when
  std::int64_t hand_ = 0, to_look_at_ = 0;
  std::uint32_t looked_ = 0;  // when the hand last moved
  std::optional<TinyLfu> lfu_;
  // The rows that were admitted, of the last update that had others.
  std::vector<std::int64_t> rows_;
  std::vector<std::byte> values_;
};

}  // namespace cairn
