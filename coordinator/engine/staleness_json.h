// A histogram of staleness as status and reports have it.
#pragma once
#include "coordinator/cluster/staleness.h"
#include "core/base/json.h"

namespace cairn {

// [{"from": 0, "to": 0, "updates": 12}, {"from": 1, "to": 1, ...}, {"from": 2, "to": 3, ...}]
inline Json histogram_json(const StalenessHistogram& staleness) {
  Json all = Json::array();
  for (const auto& bucket : staleness.buckets())
    all.push_back({{"from", bucket.from}, {"to", bucket.to}, {"updates", bucket.updates}});
  return all;
}

}  // namespace cairn
