// RowMemory: the rows of one part of a variable in memory, with their slots: where they lie, how
// they come to their initial values, are read, and change. What a ps's Table and LocalStore share.
//
//   Numbers  Rows are numbered from the part's begin ("local"). Where a row lies is its place. Of a
//            dense variable each row has the place of its number; a hashed variable's rows get
//            theirs in the order of their first updates, found through an index (IdIndex). One that
//            was never updated has none, and reads as its initial value. A row of a hashed variable
//            may be let go of, and the next that comes has its place.
//   Two steps  Reading and updating are two steps each: find() says where the rows are, and which
//            of them are not here; read() or update() does it. A caller whose rows may be elsewhere
//            gets them between the two.
//   Trust    Callers have verified specs, rules, row numbers and sizes.
//   Thread   one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"
#include "core/memory/arena.h"
#include "core/rows/gather.h"
#include "core/rows/id_index.h"
#include "core/rows/layout.h"
#include "core/rows/row_layout.h"

namespace cairn {

// Where rows lie. Of a hashed variable it is good until the next find() or make().
struct Places {
  std::span<const std::int64_t> rows;  // as they were asked for
  std::span<const std::int64_t> at;    // the place of each; 0 for one that is absent
  // The rows that have no place, as ascending indices into `rows`.
  std::span<const std::size_t> absent;
  // `at`, where it counts through consecutive places.
  std::optional<RowRange> range;
};

class RowMemory {
 public:
  // Rows `range` of the variable, at their initial values, which are a function of `seed`, with the
  // slots of `rule`.
  // Errors  ResourceExhausted: not enough memory.
  RowMemory(std::shared_ptr<const VariableSpec> spec, const UpdateRule& rule, RowRange range,
            std::uint64_t seed);

  const VariableSpec& spec() const { return *spec_; }
  RowRange range() const { return range_; }
  std::int64_t rows() const { return range_.size(); }
  bool hashed() const { return index_.has_value(); }
  std::int64_t held() const { return hashed() ? index_->size() : rows(); }  // places in memory
  std::int64_t used() const { return hashed() ? index_->used() : rows(); }  // that have a row
  const UpdateRule& rule() const { return rule_; }  // the one that has slots; an assignment if none
  const RowLayout& layout() const { return layout_; }
  // How many updates by optimizers there were: the `t` of Adam.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }
  std::size_t bytes() const;        // of the rows held, with their slots and the index
  std::size_t place_bytes() const;  // of one more row at most, with its slots

  // ---- which of these are not here ----
  // Cost  dense: a look at the numbers. Hashed: a look-up per row, prefetched ahead.
  Places find(std::span<const std::int64_t> rows);
  // The places of those that are here.
  std::vector<std::int64_t> present(std::span<const std::int64_t> rows);
  // Gives those that are absent a place each, at their initial values.
  // Errors  ResourceExhausted: not enough memory; some of the rows may have been made.
  Places make(const Places& found);

  // The row at this place of a hashed variable goes, wherever its values are then. The caller's
  // Places are good no longer.
  void let_go(std::int64_t place) { index_->erase(place); }
  // The last place goes, where there is one without a row. If it has a row, that moves to another
  // place, which is returned, otherwise IdIndex::kAbsent. Memory of places that went stays until
  // give_back().
  std::int64_t drop_last_place();
  void give_back() { arena_->give_back(layout_.bytes(held())); }

  // ---- do it ----
  // Copies the rows to `out`, packed, in the order in which they were asked for. Those that are
  // absent read as their initial values.
  void read(const Places& places, std::byte* out, NextReader next = NextReader::kThisCore) const;
  // Every row; not of a hashed variable.
  void read_all(std::byte* out, NextReader next = NextReader::kThisCore) const;
  // One update: `places` of distinct rows, none of them absent, with `values` packed beside them. A
  // table rule takes every other row's gradient as zero. `continues`: these are further rows of the
  // update before it; no table rule can do that.
  void update(const UpdateRule& rule, float learning_rate, const Places& places,
              const std::byte* values, bool continues = false);
  // One update of every row; not for a hashed variable.
  void update_all(const UpdateRule& rule, float learning_rate, const std::byte* values);

  // ---- layout ----
  // Lays the rows anew with the slots of `rule`, at their initial values; the parameters stay, and
  // so do places. A rule of the same kind keeps the slots as they are.
  // Errors  ResourceExhausted: not enough memory; nothing has changed.
  void set_rule(const UpdateRule& rule);
  // Everything back to initial values; a hashed variable holds no row then.
  void reset();
  // These rows of a dense variable back to initial values, with their slots.
  void reset(RowRange rows) { initialize(rows.begin, rows.end); }

  // ---- saving, restoring, lending ----
  // IdIndex::kFree where there is none.
  std::int64_t row_at(std::int64_t place) const {
    return hashed() ? index_->ids()[static_cast<std::size_t>(place)] : place;
  }
  // By place; not of a dense variable, whose rows are their places.
  std::span<const std::int64_t> rows_held() const;
  // Copies the rows at `places` with their slots, each as RowLayout::saved_row_bytes() says.
  void save(std::span<const std::int64_t> places, std::byte* out) const;
  void save(RowRange places, std::byte* out) const;
  // Sets the row at `place` and its first `slots` slots from `saved`, laid out in that way, or the
  // slots alone.
  enum class Take : std::uint8_t { kRowsAndSlots, kSlots };
  void restore(std::int64_t place, const std::byte* saved, std::uint32_t slots,
               Take what = Take::kRowsAndSlots);
  // Where many rows are to be restored: expect() says how many in all, roughly; places_to_restore()
  // gives those that are absent a place each, where only slots from `slots` on have their initial
  // values; restore() then sets all, which lie `saved_bytes` apart.
  // Errors  ResourceExhausted: not enough memory; some of the rows may have been made.
  void expect(std::int64_t rows);
  Places places_to_restore(std::span<const std::int64_t> rows, std::uint32_t slots);
  void restore(const Places& places, const std::byte* saved, std::size_t saved_bytes,
               std::uint32_t slots);
  // The rows at these places where they lie, for kernels and loans.
  RowBlock block(RowRange places) const;
  // Rows that were lent from where they lie keep it alive.
  const std::shared_ptr<Arena>& arena() const { return arena_; }

 private:
  std::byte* parameters(std::int64_t place) const {
    return arena_->data() + static_cast<std::size_t>(place) * layout_.stride_bytes();
  }
  std::byte* save_row(std::int64_t place, std::byte* out) const;  // returns where the next one goes
  std::byte* slot(std::int64_t place, std::uint32_t index) const {
    return parameters(place) +
           static_cast<std::size_t>((index + 1) * layout_.slot_offset) * layout_.element_bytes;
  }
  Places places_of(std::span<const std::int64_t> rows);
  void reserve(std::int64_t rows);
  void initialize(std::int64_t begin, std::int64_t end);
  void initialize_slots(std::int64_t begin, std::int64_t end, std::uint32_t first = 0);
  // Adds those of `rows` that are absent to the index and calls `initialize(begin, end, failed)`
  // for the places that they get, also if there is no memory for all of them.
  template <typename Initialize>
  void add_absent(std::span<const std::int64_t> rows, Initialize initialize);
  RuleInputs count(const UpdateRule& rule, float learning_rate, bool continues);

  std::shared_ptr<const VariableSpec> spec_;
  UpdateRule rule_;
  RowRange range_;
  std::uint64_t seed_;
  RowLayout layout_;
  std::shared_ptr<Arena> arena_;
  std::int64_t updates_ = 0;
  std::optional<IdIndex> index_;  // of a hashed variable: row number -> place
  // find()'s answer for a hashed variable points into these, which keep their memory between calls.
  std::vector<std::int64_t> places_;
  std::vector<std::size_t> absent_;
};

}  // namespace cairn
