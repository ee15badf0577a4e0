// Strategies of several replicas in one process, for tests that hold for both of them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/central_storage_strategy.h"
#include "coordinator/mirrored_strategy.h"

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
struct Central {
  static std::unique_ptr<InSyncStrategy> make(int replicas, InSyncOptions options = {}) {
    return std::make_unique<CentralStorageStrategy>(logical_cpus(replicas), "", options);
  }
};
using InSyncKinds = ::testing::Types<Mirrored, Central>;

// With three replicas.
template <typename Kind>
struct ThreeInSync : ::testing::Test {
  std::unique_ptr<InSyncStrategy> owned = Kind::make(3);
  InSyncStrategy& strategy = *owned;
  Variable scalar(float value, Aggregation aggregation = Aggregation::kSum) {
    return strategy.create_variable({.name = "scalar",
                                     .shape = {},
                                     .initializer = Initializer::constant(value),
                                     .aggregation = aggregation});
  }
  float value_of(const Variable& variable) { return variable.read().eval().template item<float>(); }
};

}  // namespace cairn::testing
