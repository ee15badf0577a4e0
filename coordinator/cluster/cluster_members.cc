#include "coordinator/cluster/cluster_members.h"

#include <algorithm>

namespace cairn {

std::vector<ClusterMember*> ClusterMembers::all() const {
  std::vector<ClusterMember*> members;
  for (const auto& one : ps) members.push_back(one.get());
  for (const auto& worker : workers) members.push_back(worker.get());
  return members;
}

bool ClusterMembers::all_ps_ready() const {
  return std::all_of(ps.begin(), ps.end(), [](const auto& one) { return one->ready; });
}

bool ClusterMembers::any_ps_given_up() const {
  return std::any_of(ps.begin(), ps.end(), [](const auto& one) { return one->lost_for_good; });
}

const Ps* ClusterMembers::still_restoring() const {
  for (const auto& one : ps)
    if (!one->coming.from.empty()) return one.get();
  return nullptr;
}

// A ps that is lost has no shards here, since PsGroup clears them at that moment.
std::vector<ShardClient*> ClusterMembers::all_shards() const {
  std::vector<ShardClient*> all;
  for (const auto& one : ps)
    for (const auto& shard : one->shards) all.push_back(shard.get());
  return all;
}

// Compared before and after a wait, these tell whether some ps was lost and came back in between,
// which its `ready` alone would not show.
std::vector<std::uint64_t> ClusterMembers::times_attached() const {
  std::vector<std::uint64_t> all;
  for (const auto& one : ps) all.push_back(one->attached);
  return all;
}

std::uint64_t ClusterMembers::rows_generation() const {
  std::uint64_t generation = restores;
  for (const auto& one : ps) generation += one->attached;
  return generation;
}

std::vector<MissingTask> ClusterMembers::not_connected() const {
  std::vector<MissingTask> missing;
  for (const ClusterMember* member : all())
    if (!member->control) missing.push_back({member->name, member->address, member->trouble});
  return missing;
}

}  // namespace cairn
