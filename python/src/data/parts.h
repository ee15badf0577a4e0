// Parts of datasets and examples.
#pragma once
#include "data/dataset/dataset.h"
#include "interpreter.h"

namespace cairn::python {

void bind_dataset_parts(nb::module_& m);
// Binds Dataset.open().
void bind_opening(nb::class_<Dataset>& dataset);

}  // namespace cairn::python
