// The operations of core/graph/ops_arrange.h on any device, against loops that say what they mean.
#pragma once
#include "core/kernels/device.h"

namespace cairn::testing {

// By shapes known when traced and by leading dimensions known only when run; failures are gtest's.
void check_arrange_ops(Device& device);

}  // namespace cairn::testing
