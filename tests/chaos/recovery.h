// How long until work goes on after a process was killed and started again.
#pragma once
#include "tests/chaos/cluster.h"

namespace cairn::chaos {

// Kills a worker, a ps and the coordinator, each `times`, and prints medians and parts. 0: all went
// well.
int measure_recovery(const ClusterOptions& options, int times);

}  // namespace cairn::chaos
