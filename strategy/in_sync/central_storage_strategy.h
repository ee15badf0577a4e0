// CentralStorageStrategy: synchronous training on several replicas of one process that read and
// update the same variables.
//
//   CentralStorageStrategy strategy({"cpu:0", "cpu:1"});
//
// It is used as MirroredStrategy is. A step makes one update of all replicas' gradients or changes:
// it needs the memory of one copy of the variables, and its replicas wait for one another at every
// update. A change in replica context is combined by the variable's aggregation; NONE is refused.
// Synchronization means nothing, since there are no copies.
#pragma once
#include <string>
#include <vector>

#include "strategy/in_sync/in_sync_strategy.h"

namespace cairn {

//   Failures, repetition, batches, threads: see InSyncStrategy.
class CentralStorageStrategy final : public InSyncStrategy {
 public:
  // A replica for each compute device, named as in MirroredStrategy; none named: the processor.
  // Variables lie on `parameter_device`, a logical CPU, which is the only compute device if that is
  // one, or "cpu:0", unless it is named.
  //   Errors  InvalidArgument: a name that means no device, a logical CPU that is named twice, or a
  //           GPU for the variables. NotFound: a GPU that this machine does not have; says why.
  explicit CentralStorageStrategy(const std::vector<std::string>& compute_devices = {},
                                  const std::string& parameter_device = "",
                                  const InSyncOptions& options = {});

 protected:
  std::vector<std::string> parameter_devices() const override { return {parameter_device_}; }

 private:
  std::string parameter_device_;
};

}  // namespace cairn
