// ReplicaRunner: runs a function's plans on the replicas of this process, in step with one another
// and with those of other processes.
//   Thread  one at a time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "collective/base/counts.h"
#include "core/exec/executor.h"

namespace cairn {

class ReplicaRunner {
 public:
  virtual ~ReplicaRunner() = default;

  // The run of one replica.
  struct Run {
    std::shared_ptr<const Plan> plan;
    RunInputs inputs;
  };
  // All together, one run for each replica of this process; the outputs in their order.
  //   Errors  the first that a replica met. A push is applied once all replicas came to it; if one
  //           did not, none of it is applied.
  virtual std::vector<std::vector<Tensor>> run(std::vector<Run> runs, const StepContext& step) = 0;
  // Whether the replicas' devices sum what the plans all-reduce. If so, make the plans with
  // PlanOptions::reduces_shares.
  virtual bool sums_on_devices() const { return false; }
  // Where that is done, for people to read; empty: there is nothing to say.
  virtual std::string sums_text() const { return {}; }
  // Counts of the replicas' collective calls, in their order. To ask between two runs.
  virtual std::vector<CollectiveCounts> counts() const = 0;
};

}  // namespace cairn
