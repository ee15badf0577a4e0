// ServedRows: the rows of one variable of a served version. They do not change, unless the
// model follows its training (live_rows.h, ps_tables.h).
//   Thread  any number at once; each brings scratch memory of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/graph/variable.h"
#include "core/rows/id_index.h"
#include "core/tensor/tensor.h"
#include "serving/model/read_counters.h"
#include "serving/model/row_pool.h"

namespace cairn::serving {

class PsTables;

class ServedRows {
 public:
  virtual ~ServedRows() = default;
  // Copies these rows to `out`, packed. The caller has verified that they are rows of the variable.
  virtual void read(std::span<const std::int64_t> rows, std::byte* out,
                    std::vector<std::int64_t>& scratch) const = 0;
  // The whole variable. CAIRN_CHECKs that it is not hashed.
  virtual Tensor whole() const = 0;
  // Bytes of the rows and of what finds them; of these, in common with the version before.
  virtual std::size_t bytes() const = 0;
  virtual std::size_t shared_bytes() const { return 0; }
  // The tables that these rows are read together with, on the ps; null: they are here.
  virtual PsTables* on_ps() const { return nullptr; }
};

// A variable that lies as its tensor does.
class WholeRows final : public ServedRows {
 public:
  explicit WholeRows(Tensor value) : value_(std::move(value)) {}
  void read(std::span<const std::int64_t> rows, std::byte* out,
            std::vector<std::int64_t>& scratch) const override;
  Tensor whole() const override { return value_; }
  std::size_t bytes() const override { return value_.bytes(); }

 private:
  Tensor value_;
};

// Rows in places of a pool: of a table by the row's number, of a hashed one by an index of the rows
// that there are. Rows that a hashed table lacks read as their initial values.
class PooledRows final : public ServedRows {
 public:
  void read(std::span<const std::int64_t> rows, std::byte* out,
            std::vector<std::int64_t>& scratch) const override;
  Tensor whole() const override;
  std::size_t bytes() const override;
  std::size_t shared_bytes() const override;

 private:
  friend class PooledRowsBuilder;
  PooledRows(std::shared_ptr<const VariableSpec> spec, std::uint64_t seed)
      : spec_(std::move(spec)), seed_(seed) {}
  void read_hashed(std::span<const std::int64_t> rows, std::byte* out,
                   std::vector<std::int64_t>& scratch) const;

  std::shared_ptr<const VariableSpec> spec_;
  std::uint64_t seed_;
  std::shared_ptr<ReadCounters> counters_;
  std::shared_ptr<Generation> generation_;
  std::vector<std::uint32_t> places_;  // by row; of a hashed table by the index's place
  IdIndex index_;                      // of a hashed table
  std::size_t shared_ = 0;             // rows in common with the version before
};

// Makes the rows of a version from those of its weights, which come in ascending order.
class PooledRowsBuilder {
 public:
  // `before`: the same variable in the version before, or null. `counters`: where unknown ids are
  // counted.
  PooledRowsBuilder(std::shared_ptr<const VariableSpec> spec, std::uint64_t seed,
                    std::shared_ptr<const ServedRows> before,
                    std::shared_ptr<ReadCounters> counters = nullptr);
  ~PooledRowsBuilder();  // gives back the places of rows that were not finished
  void put(std::int64_t row, const std::byte* values);
  // Rows that did not come have their initial values.
  std::shared_ptr<const ServedRows> finish();

 private:
  void fill_up_to(std::int64_t row);
  void add(std::int64_t row, const std::byte* values);
  const std::uint32_t* place_before(std::int64_t row) const;
  std::vector<std::uint32_t> replaced() const;

  std::unique_ptr<PooledRows> rows_;
  std::shared_ptr<const PooledRows> before_;
  std::shared_ptr<RowPool> pool_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::byte> initial_;
  std::int64_t next_ = 0;
};

}  // namespace cairn::serving
