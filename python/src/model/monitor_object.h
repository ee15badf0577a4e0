// Monitors, plateaus and event files.
#pragma once
#include "interpreter.h"

namespace cairn::python {

void bind_monitors(nb::module_& m);

}  // namespace cairn::python
