// RocksDB's reading side: see row_store.h.
#pragma once
#include <memory>
#include <string>

#include "storage/row_store.h"

namespace cairn::storage {

// Errors  NotFound: there is no database in `folder`. DataLoss: it cannot be opened.
std::unique_ptr<DatabaseReader> open_rocks_reader(const std::string& folder);

}  // namespace cairn::storage
