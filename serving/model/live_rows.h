// LiveRows: the rows of one variable of a served model that follows its training. They change while
// requests read them: each row is read whole, as it was before a change or after it.
//
//   A shard that begins anew sends all of its rows again, and until they have come the old ones are
//   read. begin() notes which are still old, complete() sets those that never came to their initial
//   values.
//   Memory  the rows; of a hashed table those that there are, and 13 to 21 bytes each to find them.
//           While a part begins anew also a bit for each row.
//   Thread  the readers' functions: any number at once, beside a writer. The writer's: one at a
//           time. Rows change a few hundred at a time, so that no reader waits for many.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "core/memory/arena.h"
#include "core/rows/layout.h"
#include "serving/model/served_rows.h"

namespace cairn::serving {

class LiveRows final : public ServedRows {
 public:
  // At initial values by this seed.
  //   Errors  ResourceExhausted: not enough memory.
  LiveRows(VariableSpec spec, std::uint64_t seed, std::shared_ptr<ReadCounters> counters);

  // ---- readers ----
  void read(std::span<const std::int64_t> rows, std::byte* out,
            std::vector<std::int64_t>& scratch) const override;
  // Copied when rows have changed since the last call: for dense variables, which are small.
  Tensor whole() const override;
  std::size_t bytes() const override;
  const VariableSpec& spec() const { return spec_; }

  // ---- the writer ----
  // `values` packed, in the order of `rows`, which are rows of the variable.
  //   Errors  ResourceExhausted: not enough memory; the rows before those that did not fit are set.
  void put(std::span<const std::int64_t> rows, const std::byte* values);
  // These are at their initial values again.
  void drop(std::span<const std::int64_t> rows);
  // From now on the rows of `part` that put() has not set are old. Initial values are those of the
  // run, which may be others than the model's: a model that was saved with all of its rows says
  // nothing of them.
  void begin(RowRange part, const Initializer& initializer, std::uint64_t seed);
  // Those that are old still are at their initial values.
  void complete(RowRange part);

 private:
  bool is_old(std::int64_t place) const;
  void set_old(std::int64_t place, bool old);
  std::byte* at(std::int64_t place) { return rows_.data() + row_bytes_ * to_size(place); }
  static std::size_t to_size(std::int64_t place) { return static_cast<std::size_t>(place); }
  void reset_dense(RowRange part);
  void erase_old(RowRange part);
  void erase(std::span<const std::int64_t> rows);

  mutable std::shared_mutex mutex_;  // guards the initializer, and all below the counters
  VariableSpec spec_;
  const std::size_t row_bytes_;
  const std::shared_ptr<ReadCounters> counters_;
  std::uint64_t seed_;
  Arena rows_;                      // by row; of a hashed table by the index's place
  IdIndex index_;                   // of a hashed table
  std::vector<std::uint64_t> old_;  // a bit a place, by the writer alone
  mutable std::shared_ptr<const Tensor> whole_;
};

}  // namespace cairn::serving
