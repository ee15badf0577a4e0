// Parts of datasets and examples.
#pragma once
#include "interpreter.h"

namespace cairn::python {

void bind_dataset_parts(nb::module_& m);

}  // namespace cairn::python
