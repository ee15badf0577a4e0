// Columns of Arrow's batches, as tensors.
#pragma once
#include <string>

#include "arrow_values.h"

namespace cairn::python {

// The columns of a stream of structs; of any other stream its only column, by `name`.
// `owner` keeps `batches` for tensors that share their memory. `facts` receives what was found,
// unless it is null. Without the GIL.
//   Errors  as columns_of_table().
Columns columns_of_arrow(const ArrowBatches& batches, const SharedReference& owner,
                         const TableOptions& options, const std::string& name,
                         TableFacts* facts = nullptr);

}  // namespace cairn::python
