// Runs cells of the matrix, and writes what came of it as a table, for people and for the page of
// guarantees.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/matrix.h"

namespace cairn::simulation {

struct MatrixRun {
  std::string cells;  // by the beginning of their names; empty: all
  std::uint64_t first = 1, seeds = 50;
  // Every `parts`-th of all cells, from the `part`-th on, which counts from 1.
  std::size_t part = 1, parts = 1;
  std::string page;  // whose table is written anew; empty: none
};

struct CellVerdict {
  Cell cell;
  std::uint64_t seeds = 0;
  std::uint64_t met = 0;  // seeds in which every fault met its phase
  std::uint64_t bad = 0, first_bad = 0;
  std::string complaint;  // the first of that seed
};

CellVerdict judge_cell(const Cell& cell, std::uint64_t first, std::uint64_t seeds);

// A row for each fault and phase: its promise, seeds and failures of each kind of consistency, and
// the planted bug.
std::string markdown_of(const std::vector<CellVerdict>& verdicts);

// `page` with the table between its two marker lines.
//   Errors  FailedPrecondition: it has no such lines.
std::string with_table(const std::string& page, const std::string& table);

// Prints a line for each cell as it goes.
//   Result  whether all seeds were good.
//   Errors  InvalidArgument: no cell has such a name. Those of reading and writing the page.
bool run_matrix(const MatrixRun& run);

}  // namespace cairn::simulation
