// StoredTables: which tables of a version are read from disk, under a memory limit, and what the
// version holds of the limit.
//
//   A version whose variables all fit, with room for a successor of the same size, is in memory as
//   a whole. Of any other one the tables of 1 MB or more that are read by rows alone, and all that
//   are hashed, are read from the databases of its checkpoint, and what remains has to fit.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "serving/model/memory_budget.h"
#include "serving/model/read_counters.h"
#include "serving/model/saved_rows.h"
#include "serving/model/served_rows.h"

namespace cairn::serving {

class StoredTables {
 public:
  struct Options {
    std::shared_ptr<MemoryBudget> memory;        // null: no table is read from disk
    std::shared_ptr<ReadCounters> counters;      // of the model
    const MemoryBudget::Hold* before = nullptr;  // that of the version before
    std::string what;                            // names the version in messages
  };
  // No table.
  StoredTables() = default;
  // `variables` are those of `graph`, in its order. `is_large` says which are worth it.
  //   Errors  ResourceExhausted: what has to be in memory does not fit. Unimplemented: a table does
  //           not fit, and cannot be read by rows where it lies. DataLoss, NotFound: storage's.
  //   Thread  any that may block on files.
  StoredTables(const SavedRowsReader& weights, const std::vector<VariableSpec>& variables,
               const Graph& graph, bool (*is_large)(const VariableSpec&), const Options& options);

  // The rows of that variable; null: it is to be in memory.
  std::shared_ptr<const ServedRows> rows_of(std::size_t variable) const {
    return variable < rows_.size() ? rows_[variable] : nullptr;
  }
  // To be kept for longer than the rows. Null without a limit.
  std::unique_ptr<MemoryBudget::Hold> take_hold() { return std::move(hold_); }

 private:
  std::unique_ptr<MemoryBudget::Hold> hold_;
  std::vector<std::shared_ptr<const ServedRows>> rows_;
};

}  // namespace cairn::serving
