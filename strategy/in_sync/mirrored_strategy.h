// MirroredStrategy: synchronous training on several replicas of one process, each with a copy of
// every variable.
//
//   MirroredStrategy strategy({"cpu:0", "cpu:1"});
//   auto scope = strategy.scope();
//   Function step = strategy.function([&](Iterator batches) {
//     auto [features, label] = batches.get_next();         this replica's part of a global batch
//     Array loss = sum(losses(features, label)) / global_batch_size;
//     optimizer.minimize(loss);                            by the sum of all replicas' gradients
//     return loss;
//   });
//   auto batches = strategy.iterate(strategy.experimental_distribute_dataset(dataset));
//   RunValue loss = strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]);
//
// If a replica changes a variable, the variable's aggregation and synchronization decide the effect
// on the copies:
//
//                         ON_WRITE, which AUTO means                 ON_READ
//   read on a replica     its copy                                   its copy
//   read across replicas  any copy                                   the sum or mean of the copies,
//                                                                    or replica 0's
//   changed on a replica  SUM, MEAN, ONLY_FIRST_REPLICA: one change  its copy
//                         of all copies. NONE: of its copy alone
//   changed across them   all copies                                 all copies; a sum is cut into
//                                                                    equal parts
//
// An optimizer changes all copies, whatever the aggregation.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/in_sync/in_sync_strategy.h"

namespace cairn {

//   Memory   one copy of all variables and their slots for each device.
//   Failures, repetition, batches, threads: see InSyncStrategy.
class MirroredStrategy : public InSyncStrategy {
 public:
  // A replica for each device: "cpu:0", "cpu:1", ... are logical CPUs, each computing on a thread
  // of its own; "gpu:0", "gpu:1", ... are this machine's GPUs, each of which may have several
  // replicas. None named: the processor. A replica's copy of the variables lies in the memory of
  // its GPU, as far as there is room, and else in the host's. Values that replicas reduce meet in
  // the host's, unless each replica has a GPU of its own and NCCL is found: then the GPUs sum them
  // (sums_text() says which).
  //   Errors  InvalidArgument: a name that means no device, or a logical CPU that is named twice.
  //           NotFound: a GPU that this machine does not have; says why.
  explicit MirroredStrategy(const std::vector<std::string>& devices = {},
                            const InSyncOptions& options = {});
  // The same; how replicas' values become one is the program's own choice, or one of Cairn's by its
  // name (strategy/in_sync/cross_device_ops.h), instead of that of the options.
  //   Errors  as above, and those of cross_device_ops_of().
  MirroredStrategy(const std::vector<std::string>& devices,
                   std::shared_ptr<CrossDeviceOps> cross_device_ops, InSyncOptions options = {});
  MirroredStrategy(const std::vector<std::string>& devices, std::string_view cross_device_ops,
                   InSyncOptions options = {});
};

}  // namespace cairn
