// The C++ side of wire::Step in rpc/cairn.capnp.
//   Thread  any.
#pragma once
#include "core/rows/variable_store.h"
#include "rpc/cairn.capnp.h"

namespace cairn::wire {

void write(Step::Builder out, const StepContext& step);
StepContext read(Step::Reader in);

}  // namespace cairn::wire
