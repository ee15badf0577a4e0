#include "strategy/in_sync/cross_device_ops.h"

#include <string>

#include "collective/local/thread_group.h"
#include "core/base/error.h"

namespace cairn {

using Members = std::vector<std::unique_ptr<Collective>>;

Members ThreadOps::group(int replicas, Duration timeout) {
  return make_thread_group(replicas, timeout);
}

Members NcclAllReduce::group(int replicas, Duration timeout) {
  return make_thread_group(replicas, timeout);
}

// Asked here, where the message can name what the program chose.
Members ReductionToOneDevice::group(int replicas, Duration timeout) {
  if (replica_ < 0 || replica_ >= replicas)
    throw InvalidArgumentError(str("cross_device_ops: ReductionToOneDevice(", replica_,
                                   ") is to add on replica ", replica_, ", and the strategy has ",
                                   replicas, ", 0 to ", replicas - 1, ": name one of them"));
  return make_thread_group(replicas, ThreadGroupOptions{.timeout = timeout, .adds = replica_});
}

Members HierarchicalCopyAllReduce::group(int replicas, Duration timeout) {
  return make_thread_group(replicas,
                           ThreadGroupOptions{.timeout = timeout, .order = SumOrder::kPairs});
}

Members Ring::group(int replicas, Duration timeout) {
  return make_thread_group(replicas,
                           ThreadGroupOptions{.timeout = timeout, .order = SumOrder::kRing});
}

std::shared_ptr<CrossDeviceOps> cross_device_ops_of(std::string_view name) {
  if (name == "ThreadOps") return std::make_shared<ThreadOps>();
  if (name == "ReductionToOneDevice") return std::make_shared<ReductionToOneDevice>();
  if (name == "HierarchicalCopyAllReduce") return std::make_shared<HierarchicalCopyAllReduce>();
  if (name == "Ring") return std::make_shared<Ring>();
  if (name == "NcclAllReduce") return std::make_shared<NcclAllReduce>();
  throw InvalidArgumentError(str("cross_device_ops: there is no \"", name,
                                 "\"; there are \"ThreadOps\", \"ReductionToOneDevice\", "
                                 "\"HierarchicalCopyAllReduce\", \"Ring\" and \"NcclAllReduce\""));
}

}  // namespace cairn
