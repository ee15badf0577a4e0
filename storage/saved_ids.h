// The ids of a hashed variable in a checkpoint, before they become rows of a dense variable that
// has fewer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "storage/row_store.h"

namespace cairn::storage {

struct WantedIds {
  std::string saved;      // the checkpoint's hashed variable
  std::string variable;   // the program's, for messages
  std::int64_t rows = 0;  // of it: ids are to be below
};
// Reads all blocks of the variable in the databases of the checkpoint in `folder`.
//   Errors  FailedPrecondition: some ids do not fit, with the first of them and their number.
//           NotFound, DataLoss: the databases cannot be read.
//   Thread  any that may block on files.
void verify_ids(RowStore& store, const std::string& folder,
                const std::vector<std::string>& databases, const WantedIds& wanted);

}  // namespace cairn::storage
