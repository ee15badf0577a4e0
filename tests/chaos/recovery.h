// How long until work goes on after a process was killed and started again.
#pragma once
#include "tests/chaos/options.h"

namespace cairn::chaos {

// Kills a worker, a ps and the coordinator, each as often as `options.harm` says, and prints
// medians and parts. With replicas it is another ps each time, once all backups are in sync again:
// the one that died last has no shard to answer for. 0: all went well.
int measure_recovery(const Options& options);

}  // namespace cairn::chaos
