// PsTables: the tables of a served model whose rows stay on the parameter servers of a run, and are
// read from there for each batch.
//
//   A row that does not come within `patience` counts as what it was when it was read last, if it
//   is still known, and else as its initial value; read() says how many there were. Known rows lie
//   in a table of fixed size, where a later row takes the place of an earlier one.
//   A run that is resumed has other ps: `where` is asked again, at most once a second, while no row
//   comes.
//   Thread  any number at once.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/variable.h"
#include "serving/follow/row_reader.h"
#include "serving/model/served_rows.h"

namespace cairn::serving {

struct PsTablesOptions {
  RowsOfRun where;
  Duration patience = std::chrono::milliseconds(100);
  std::size_t known_bytes = std::size_t{64} << 20;  // for known rows, of all tables
  std::shared_ptr<ReadCounters> counters = std::make_shared<ReadCounters>();
};

class PsTables {
 public:
  // `tables`: of which rows will be read. `seed`: of initial values, until a ps has told it.
  //   Errors  those of `where`, but for Unavailable.
  PsTables(const std::vector<VariableSpec>& tables, std::uint64_t seed, PsTablesOptions options);
  ~PsTables();

  struct Wanted {
    const VariableSpec* table = nullptr;
    std::span<const std::int64_t> rows;  // of the table
    std::byte* out = nullptr;            // room for all of them, packed
  };
  // Asks all ps at once. Returns how many rows did not come in time.
  std::int64_t read(std::span<const Wanted> wanted);
  std::int64_t step() const { return step_; }  // the newest that rows read so far may contain
  std::size_t bytes() const;

 private:
  class KnownRows;
  std::shared_ptr<RowReader> reader();
  void look_again();
  RowsRead ask(std::span<const RowsWanted> wanted);
  std::int64_t take(const Wanted& wanted, const std::vector<std::size_t>& missing,
                    std::uint64_t seed);

  const PsTablesOptions options_;
  std::atomic<std::uint64_t> seed_;
  std::atomic<std::int64_t> step_{0};
  std::map<std::string, std::unique_ptr<KnownRows>> known_;
  std::mutex mutex_;  // guards those below
  std::shared_ptr<RowReader> reader_;
  RowStreamOptions place_;
  TimePoint looked_ = TimePoint::min();
  std::string trouble_;
};

// One of these tables.
class PsRows final : public ServedRows {
 public:
  PsRows(VariableSpec spec, std::shared_ptr<PsTables> tables)
      : spec_(std::move(spec)), tables_(std::move(tables)) {}
  void read(std::span<const std::int64_t> rows, std::byte* out,
            std::vector<std::int64_t>& scratch) const override;
  Tensor whole() const override;
  std::size_t bytes() const override { return 0; }
  PsTables* on_ps() const override { return tables_.get(); }

 private:
  const VariableSpec spec_;
  const std::shared_ptr<PsTables> tables_;
};

}  // namespace cairn::serving
