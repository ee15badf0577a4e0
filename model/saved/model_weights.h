// A saved model's weights: a checkpoint of the variables that its graph reads, and of nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/variable.h"
#include "strategy/base/local_checkpoint.h"

namespace cairn {

struct CopiedWeights {
  std::int64_t global_step = 0;
  // of each variable, that the checkpoint is known to have: 0 of a delta, where rows may be twice
  std::vector<std::int64_t> rows;
};

// Copies the rows of `variables` from the checkpoint at `from` into a new one at `to`: database by
// database, each row without its slots. So it has the rows that the other one has: of a hashed
// variable, and of one on parameter servers, those that were ever touched.
//   Cost    a block of rows in memory, whatever the size of the variables.
//   Errors  FailedPrecondition: the checkpoint lacks a variable, or has it with another type.
//           NotFound, DataLoss: as storage's. The disk's.
//   Thread  any that may block on files.
CopiedWeights copy_weights(const LocalPlace& place, const std::string& from,
                           const std::vector<VariableSpec>& variables, const std::string& to);

}  // namespace cairn
