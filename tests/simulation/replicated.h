// The mix `replicated`: each shard's rows are on several ps, which die, stand still and are cut off
// while there is work, and sometimes the coordinator with them. As long as no two copies of a shard
// are lost at once, no update may be lost, and at the end all copies are equal.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "testing/simulated_cluster.h"
#include "tests/simulation/scenario.h"

namespace cairn::simulation {

Scenario replicated_scenario(std::uint64_t seed);

// The ps that may lose copies of their shards by the fault; empty: none may. A ps and the
// coordinator that do not hear each other cost that ps its copies; two ps, either theirs. All, if
// the fault is to strike only while all copies of all shards are in sync.
std::set<int> struck_by(const Fault& fault, const Scenario& scenario);

// Whether `coordinator`'s status says that all shards have all of their backups in sync.
bool in_sync(const std::string& status_json, const Scenario& scenario);

// Compares each backup that the layout names to its primary: rows with their slots, versions, and
// what was applied. When nothing changes any more.
std::vector<std::string> compare_copies(SimulatedCluster& cluster, const Scenario& scenario);

}  // namespace cairn::simulation
