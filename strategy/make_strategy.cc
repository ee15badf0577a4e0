#include "strategy/make_strategy.h"

#include <algorithm>
#include <utility>

#include "coordinator/cluster/cluster_resolver.h"
#include "core/base/error.h"
#include "core/tensor/element.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"
#include "strategy/servers/hybrid_strategy.h"
#include "strategy/servers/parameter_server_strategy.h"

namespace cairn {
namespace {

void verify(const std::string& name, const StrategyOptions& options) {
  static const std::vector<std::string> names = {"one_device",       "mirrored",
                                                 "central_storage",  "multi_worker_mirrored",
                                                 "parameter_server", "hybrid"};
  if (std::ranges::find(names, name) == names.end()) {
    const std::string near = nearest_name(name, names);
    std::string all;
    for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
    throw InvalidArgumentError(
        str("there is no strategy \"", name,
            "\": ", near.empty() ? str("they are ", all) : str("did you mean \"", near, "\"?")));
  }
  if (options.consistency != Consistency{} && name != "parameter_server")
    throw InvalidArgumentError(str("the strategy ", name, " has no consistency to choose: that is ",
                                   "parameter_server's"));
  if (options.replicas != 1 && name != "parameter_server" && name != "hybrid")
    throw InvalidArgumentError(str("the strategy ", name, " has no ps on which ", options.replicas,
                                   " replicas of its rows could lie: that is parameter_server's ",
                                   "and hybrid's; devices say how many replicas compute"));
  if (options.devices.size() > 1 && (name == "one_device" || name == "hybrid"))
    throw InvalidArgumentError(
        str("the strategy ", name, " has one replica in a process, not ", options.devices.size()));
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(const std::string& name, StrategyOptions options) {
  verify(name, options);
  std::vector<std::string> devices = std::move(options.devices);
  if (devices.empty() && (name == "mirrored" || name == "central_storage"))
    devices = {"cpu:0", "cpu:1"};
  if (name == "one_device")
    return std::make_unique<OneDeviceStrategy>(devices.empty() ? "cpu:0" : devices[0],
                                               options.seed);
  if (name == "mirrored")
    return std::make_unique<MirroredStrategy>(devices, InSyncOptions{.seed = options.seed});
  if (name == "central_storage")
    return std::make_unique<CentralStorageStrategy>(devices, "",
                                                    InSyncOptions{.seed = options.seed});
  const TFConfigClusterResolver resolver;
  if (name == "multi_worker_mirrored")
    return std::make_unique<MultiWorkerMirroredStrategy>(
        resolver, CommunicationOptions{},
        MultiWorkerOptions{.seed = options.seed, .devices = std::move(devices)});
  ParameterServerOptions on_ps{
      .seed = options.seed, .consistency = options.consistency, .replicas = options.replicas};
  if (name == "hybrid") return std::make_unique<HybridStrategy>(resolver, std::move(on_ps));
  on_ps.devices = std::move(devices);
  return std::make_unique<ParameterServerStrategy>(resolver, std::move(on_ps));
}

}  // namespace cairn
