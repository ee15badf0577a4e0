// The simulated user's program: dense variables, a dense table and a hashed one, closures that add
// one to each, and what must come of it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/layout.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/simulation/scenario.h"

namespace cairn::simulation {

inline constexpr std::int64_t kHashedRows = std::int64_t{1} << 36;

// A number for each row of a table, ascending by row. Of the hashed table: for each row that the
// job can touch.
using RowCounts = std::vector<std::pair<std::int64_t, std::int64_t>>;
std::int64_t total(const RowCounts& counts, RowRange rows);
std::int64_t total(const RowCounts& counts);

// A table, and the rows of it that belong to a value of the data: one of each range.
struct CountedTable {
  std::int64_t rows = 0, factor = 1;
  std::vector<RowRange> ranges;

  std::int64_t row_of(std::int64_t value, RowRange range) const {
    return range.begin + value * factor % range.size();
  }
  Array rows_of(const Array& values) const;
};
CountedTable dense_table(const Scenario& scenario);
CountedTable hashed_table(const Scenario& scenario);

struct Program {
  Variable v, w, rows, wide, hashed;
  ClusterCoordinator coordinator;
  PerWorkerDatasetHandle data;
  Function add;

  Program(ParameterServerStrategy& strategy, const Scenario& scenario);
};

// The sums that the closures for these elements of the data (by their places) add to the tables.
struct Due {
  RowCounts rows, hashed;
};
Due due(const Scenario& scenario,
        const std::vector<std::pair<std::uint64_t, std::uint64_t>>& elements);
Due due(const Scenario& scenario);  // for all of them

struct Values {
  std::int64_t v = 0, w = 0;
  RowCounts rows, hashed;
  std::vector<std::int64_t> wide;
};
Values zero_values(const Scenario& scenario);
// Reads them all, of the hashed table the rows that are named in `all`.
//   Errors  DataLoss: the elements of a hashed row differ, though each closure adds the same to all
//           of them.
Values values_of(const Program& program, const Due& all);

// Closures [begin, end) of the scenario, and behind the last for flights more than there is data.
void schedule(Program& program, const Scenario& scenario, std::int64_t begin, std::int64_t end);

// Variables that the program makes while closures run, one after the other, each with values of its
// own.
class LateVariables {
 public:
  explicit LateVariables(const Scenario& scenario) : wanted_(scenario.late_variables) {}

  // Makes the next one, if there is one to make after `done` of `all` closures.
  void make(ParameterServerStrategy& strategy, std::int64_t done, std::int64_t all);
  // The coordinator is going.
  void end() { made_.clear(); }
  // Another coordinator's program begins: with a journal it makes those again that there are, which
  // must have their values. Else there are none.
  void begin_again(ParameterServerStrategy& strategy, bool journal);
  // So many steps were theirs, and no closure's.
  std::int64_t updates() const { return static_cast<std::int64_t>(assigned_); }
  // Complaints about those whose values are not what they were given.
  std::vector<std::string> judge() const;

 private:
  static Variable declare(ParameterServerStrategy& strategy, std::size_t number);
  static Array value_of(std::size_t number);

  int wanted_;
  std::size_t begun_ = 0, assigned_ = 0;
  std::vector<Variable> made_;
};

}  // namespace cairn::simulation
