// Operations, forward and backward, against the recorded reference, on any device.
#pragma once
#include "core/kernels/device.h"

namespace cairn::testing {

// Every case of ops.json, as ops_vectors.cc says; failures are gtest's. `tolerances` widens those
// of floating-point numbers.
void check_all_ops(Device& device, double tolerances = 1);

}  // namespace cairn::testing
