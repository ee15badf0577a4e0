// The matrix: each fault, in each phase, under each kind of consistency, is a cell. The scenarios
// of a cell are small clusters whose ps have copies of each other's rows, and in which just that
// fault strikes just in that phase.
//
// Some phases need a loss before the fault. To have backups take over and catch up, a ps dies and
// comes back; to have a shard rebuilt, all ps that have its rows die.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/scenario.h"

namespace cairn::simulation {

enum class MatrixFault : std::uint8_t {
  kPsDies,
  kPsStaysAway,  // it dies, and comes back late
  kPsStops,
  kPsCutOff,  // from the coordinator
  kPsCutOffOneWay,
  kTwoPsCutOff,  // from each other
  kTwoPsCutOffOneWay,
  kWorkerDies,
  kWorkerZombie,  // it is taken for dead, and still sends
  kConnectionBreaks,
  kCoordinatorDies,
  kPowerLoss,  // of the coordinator's machine
};

enum class MatrixKind : std::uint8_t {
  kAsynchronous,
  kBounded,
  kSynchronous,
  kSynchronousB,
  kHybrid,
};

// The promise to be kept whatever the seed: no update is lost, or those that are lost are counted.
enum class Promise : std::uint8_t { kNoUpdate, kCounted };

struct Cell {
  MatrixFault fault = MatrixFault::kPsDies;
  Phase phase = Phase::kIdle;
  MatrixKind kind = MatrixKind::kAsynchronous;
  std::string row() const;   // "ps-dies/catching-up"
  std::string name() const;  // "ps-dies/catching-up/bounded"
  Promise promise() const;
};

// All cells, row by row. Rounds are applied only where there are rounds.
std::vector<Cell> matrix_cells();
std::vector<std::string> matrix_faults();  // by their names
std::vector<std::string> matrix_kinds();   // the same, in the order of a row's cells
// Those whose names begin with `name`, up to its end or a slash.
std::vector<Cell> cells_named(const std::string& name);

Scenario cell_scenario(const Cell& cell, std::uint64_t seed);

// The name of a planted bug (bugs/) that seeds of the row's cells were seen to find; empty: none.
std::string planted_bug(const std::string& row);

}  // namespace cairn::simulation
