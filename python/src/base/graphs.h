// Recorded functions as data.
#pragma once
#include "interpreter.h"

namespace cairn::python {

void bind_graphs(nb::module_& m);
void bind_gradient_ops(nb::module_& m);

}  // namespace cairn::python
