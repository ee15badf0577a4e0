// Calls whose arguments fit no signature: one sentence instead of nanobind's list of signatures.
#pragma once
#include "interpreter.h"

namespace cairn::python {

// From now on a call of any function, method or class of the module that does not fit says which
// argument is wrong, what was given, and what is wanted (cairn/_arguments.py).
//   Errors  of such calls: TypeError; InvalidArgument where a number is out of range.
//   Cost    an indirect jump for each call.
// From then on a strategy lives as long as a call that uses it (CallOfModule).
void explain_arguments(nb::module_& m);

}  // namespace cairn::python
