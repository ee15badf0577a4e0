// Strategies of several replicas, for tests that hold for all of them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/in_sync/mirrored_on_gpus.h"

namespace cairn::testing {

inline std::vector<std::string> logical_cpus(int replicas) {
  std::vector<std::string> names;
  for (int i = 0; i < replicas; ++i) names.push_back(str("cpu:", i));
  return names;
}

struct Mirrored {
  static std::unique_ptr<InSyncStrategy> make(int replicas, InSyncOptions options = {}) {
    return std::make_unique<MirroredStrategy>(logical_cpus(replicas), options);
  }
};
struct OnGpus {
  static std::unique_ptr<InSyncStrategy> make(int replicas, const InSyncOptions& options = {}) {
    return std::make_unique<MirroredOnGpus>(replicas, options);
  }
};
struct Central {
  static std::unique_ptr<InSyncStrategy> make(int replicas, InSyncOptions options = {}) {
    return std::make_unique<CentralStorageStrategy>(logical_cpus(replicas), "", options);
  }
};
// A cluster of one worker, which has several devices.
class WorkerDevices {
 public:
  WorkerDevices(int replicas, std::uint64_t seed)
      : cluster_({.ps = 2,
                  .workers = 1,
                  .strategy = {.seed = seed, .devices = logical_cpus(replicas)}}) {}
  static std::unique_ptr<WorkerDevices> make(int replicas, const InSyncOptions& options = {}) {
    return std::make_unique<WorkerDevices>(replicas, options.seed);
  }
  operator Strategy&() { return cluster_.strategy(); }  // NOLINT(google-explicit-constructor)

 private:
  SimulatedCluster cluster_;
};
using InSyncKinds = ::testing::Types<Mirrored, OnGpus, Central, WorkerDevices>;

// With three replicas.
template <typename Kind>
struct ThreeInSync : ::testing::Test {
  decltype(Kind::make(3)) owned = Kind::make(3);
  Strategy& strategy = *owned;
  Variable scalar(float value, Aggregation aggregation = Aggregation::kSum) {
    return strategy.create_variable({.name = "scalar",
                                     .shape = {},
                                     .initializer = Initializer::constant(value),
                                     .aggregation = aggregation});
  }
  float value_of(const Variable& variable) { return variable.read().eval().template item<float>(); }
};

}  // namespace cairn::testing
