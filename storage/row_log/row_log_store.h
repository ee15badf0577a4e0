// The ColdStore that is a row log.
#pragma once
#include <memory>

#include "storage/row_log/cold_store.h"
#include "storage/row_log/io_queue.h"
#include "storage/row_log/row_log.h"

namespace cairn::storage {

// `io` outlives it.
//   Errors  as RowLog's constructor.
std::unique_ptr<ColdStore> make_row_log_store(IoQueue& io, const RowLogOptions& options,
                                              Moved moved);

}  // namespace cairn::storage
