// make_strategy(): a strategy by its name, for a program that lets its user choose one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/consistency.h"
#include "strategy/base/strategy.h"

namespace cairn {

struct StrategyOptions {
  std::uint64_t seed = 0;  // of initial values and of random operations
  // The devices of each process, a replica for each, as MirroredStrategy names them. None: two
  // logical CPUs for mirrored and central_storage, one for all others.
  std::vector<std::string> devices = {};
  Consistency consistency = {};  // of parameter_server
  std::uint32_t replicas = 1;    // of each shard, on other ps: of parameter_server and hybrid
};

// one_device, mirrored, central_storage, multi_worker_mirrored, parameter_server or hybrid, with
// the cluster that TF_CONFIG says where it is one of several processes. What these options do not
// have, the strategies' own have (strategy/strategies.h).
//   Errors  InvalidArgument: an unknown name (the message suggests the nearest); more than one
//           device for one_device or hybrid; a consistency for any but parameter_server; replicas
//           for any without ps. Otherwise the strategy's own.
std::unique_ptr<Strategy> make_strategy(const std::string& name, StrategyOptions options = {});

}  // namespace cairn
