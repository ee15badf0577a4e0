// RowTurnover: carries out a variable's RowPolicy on the rows that a RowMemory holds: which rows an
// update may make, and which go.
//
//   What it decides follows from the updates alone, in their order, so that copies of a variable
//   that see the same updates decide alike. After a restore all rows count as just updated.
//   Age     a hand goes round over the places, a whole round in an eighth of `steps_to_live`: a row
//           goes up to so much later.
//   Elsewhere  Of a table that has rows on a disk the rows there are looked at some at a time, all
//           in about half of `steps_to_live`; a row that is moved there meanwhile may have to wait
//           for the next round. The oldest of those that are looked at go, if there are more than
//           `rows_max`.
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
  // Rows may also go because somebody says so: they have left() then.
  std::vector<std::int64_t> choose(std::size_t most);
  void stay(std::span<const std::int64_t> places);
  // The row at one place lies at another one now, which was free.
  void moved(std::int64_t from, std::int64_t to);

  // ---- rows that are elsewhere ----
  // When the row at a place was last updated, as it is to be told when the row comes back.
  std::uint32_t updated(std::int64_t place) const;
  void left(std::span<const std::int64_t> places);  // their rows, for good or for a while
  void came(std::span<const std::int64_t> places, std::span<const std::uint32_t> updated);
  // How many of the `elsewhere` rows are to be looked at now.
  std::size_t to_look_at(std::int64_t elsewhere);
  // Some of them, with their parameters; returns those that are to go, as ascending indices.
  struct Elsewhere {
    std::uint32_t updated;
    const std::byte* parameters;
  };
  std::vector<std::size_t> choose(std::span<const Elsewhere> rows, std::int64_t elsewhere) const;
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
  bool expired(std::uint32_t updated, const std::byte* parameters) const;
  std::int64_t surplus(std::int64_t elsewhere) const;
  std::uint32_t now() const { return static_cast<std::uint32_t>(memory_.updates()); }

  const RowMemory& memory_;
  const RowPolicy policy_;
  std::int64_t rows_max_ = 0;  // of this part
  std::optional<FrequencySketch> sketch_;
  std::uint64_t dropped_ = 0;
  std::vector<std::uint32_t> updated_;  // by place: when
  std::int64_t hand_ = 0, to_look_at_ = 0;
  std::uint32_t looked_ = 0;  // when the hand last moved
  // Rows elsewhere that it is time to look at, and when that was last worked out.
  double due_ = 0;
  std::uint32_t due_at_ = 0;
  std::optional<TinyLfu> lfu_;
  // The rows that were admitted, of the last update that had others.
  std::vector<std::int64_t> rows_;
  std::vector<std::byte> values_;
};

}  // namespace cairn
