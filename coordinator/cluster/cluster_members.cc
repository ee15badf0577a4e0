#include "coordinator/cluster/cluster_members.h"

#include <algorithm>

namespace cairn {

ShardReplica ShardPlace::replica() const {
  return {host->index, host->address, endpoint, host->process};
}

bool Ps::needs_rows() const {
  return std::ranges::any_of(placed, [](const PlacedShard& shard) { return shard.needs_rows; });
}

void Ps::set_needs_rows(bool needs) {
  for (PlacedShard& shard : placed) shard.needs_rows = needs;
}

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
  for (const auto& one : ps) all.insert(all.end(), one->shards.begin(), one->shards.end());
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
  for (const auto& one : ps) generation += one->rows_may_differ;
  return generation;
}

// The backups of a ps's shards are dealt out to the other ps in turns, so that the loss of one
// leaves each of them a part of its work.
std::vector<ShardLayout> ClusterMembers::place_shards(std::size_t replicas) {
  std::vector<ShardLayout> layout;
  std::vector<std::uint32_t> next_endpoint;
  for (const auto& one : ps) {
    if (replicas > 1 && one->placed.size() != ps[0]->placed.size())
      throw FailedPreconditionError(
          str(one->name, " has ", one->placed.size(), " shards and ", ps[0]->name, " ",
              ps[0]->placed.size(), ": with replicas each ps takes the shards of another one, so ",
              "start all with as many (--shards)"),
          one->name);
    next_endpoint.push_back(1 + static_cast<std::uint32_t>(one->placed.size()));
  }
  for (const auto& one : ps) {
    one->first_shard = static_cast<ShardId>(layout.size());
    one->shard_count = static_cast<std::uint32_t>(one->placed.size());
    for (ShardLayout& shard :
         shards_of({one->index, one->address, 1, one->process}, one->shard_count))
      layout.push_back(std::move(shard));
    std::size_t turn = 0;
    for (PlacedShard& shard : one->placed) {
      shard.number = one->first_shard + static_cast<ShardId>(&shard - one->placed.data());
      shard.places[0].client->set_shard(shard.number);
      shard.places[0].shard = shard.number;
      for (std::size_t r = 1; r < replicas; ++r, ++turn) {
        Ps& host = *ps[(one->index + 1 + turn % (ps.size() - 1)) % ps.size()];
        shard.places.push_back({&host, next_endpoint[host.index]++, nullptr, shard.number});
      }
    }
  }
  for (const auto& one : ps)
    for (PlacedShard& shard : one->placed)
      for (ShardPlace& place : shard.places) place.host->hosted.push_back(&place);
  return layout;
}

void ClusterMembers::cut_off(Ps& ps) {
  for (const PlacedShard& shard : ps.placed)
    if (const auto& control = shard.at().host->control) control->connection().close();
}

std::vector<MissingTask> ClusterMembers::not_connected() const {
  std::vector<MissingTask> missing;
  for (const ClusterMember* member : all())
    if (!member->control) missing.push_back({member->name, member->address, member->trouble});
  return missing;
}

}  // namespace cairn
