// Faults that wait for a phase. What the cluster is doing is read from the processes themselves, at
// random times of 20 to 100 us.
#include <algorithm>

#include "coordinator/journal/journal.h"
#include "tests/simulation/replicated.h"
#include "tests/simulation/world.h"

namespace cairn::simulation {
namespace {

bool is_there(SimulatedCluster& cluster, const ShardReplica& replica) {
  const int ps = static_cast<int>(replica.ps);
  return cluster.has_ps(ps) && cluster.ps(ps).incarnation() == replica.process;
}

bool is_after_a_loss(Phase phase) {
  return phase == Phase::kCatchUp || phase == Phase::kTakeOver || phase == Phase::kRebuild;
}

}  // namespace

// A phase that has passed within `then` is looked for again, with less time behind it.
void World::watch_for(const Fault& fault) {
  if (ended_ || strikes_.over) return;
  if (!meets(fault)) {
    const Duration pause(20'000 + random_.below(80'000));
    cluster_.reactor().schedule(pause, [this, fault] { watch_for(fault); });
    return;
  }
  cluster_.reactor().schedule(fault.then, [this, fault] {
    if (ended_ || strikes_.over) return;
    if (!meets(fault)) {
      Fault sooner = fault;
      sooner.then /= 2;
      return watch_for(sooner);
    }
    --strikes_.watched;
    strikes_.for_idle -= fault.phase == Phase::kIdle ? 1 : 0;
    ++strikes_.met;
    const std::set<int> struck = struck_by(fault, scenario_);
    struck.empty() ? strike(fault) : strike_counted(fault, struck);
  });
}

bool World::meets(const Fault& fault) {
  if (!program_ || !cluster_.has_chief() || chief_.due) return false;
  if (fault.kind == Fault::Kind::kKillPs && !cluster_.has_ps(fault.a)) return false;
  if (fault.kind == Fault::Kind::kKillWorker && !cluster_.has_worker(fault.a)) return false;
  const auto layout = cluster_.strategy().host().engine().registry().layout();
  if (!is_after_a_loss(fault.phase) && !all_in_sync(*layout)) return false;
  switch (fault.phase) {
    case Phase::kAny: return true;
    case Phase::kIdle: return finished() == lives_.scheduled && !is_being_saved(*layout);
    case Phase::kPush: return any_closure_beyond(seen_.last_pushed.size());
    case Phase::kCut: return is_being_saved(*layout);
    case Phase::kRound: return any_closure_beyond(seen_.summed.size());
    case Phase::kCatchUp: return catches_up(*layout);
    case Phase::kTakeOver:
      return std::ranges::any_of(layout->shards, [this](auto& one) { return is_unanswered(one); });
    case Phase::kJournal: return writes_journal();
    case Phase::kRebuild:
      return std::ranges::any_of(layout->shards, [this](auto& one) { return is_rebuilt(one); });
  }
  return false;
}

// A successor knows only what the journal has, and the layout may be ahead of it.
bool World::all_in_sync(const Layout& layout) {
  const auto& journal = cluster_.strategy().host().engine().options().session.journal;
  const auto backups = [](const ShardLayout& shard) { return shard.backups.size(); };
  if (journal != nullptr &&
      !std::ranges::equal(journal->state().layout().shards, layout.shards, {}, backups, backups))
    return false;
  return std::ranges::all_of(layout.shards, [this](const ShardLayout& shard) {
    return shard.backups.size() + 1 == scenario_.copies.replicas && !is_unanswered(shard) &&
           std::ranges::all_of(shard.backups, [this](const ShardReplica& backup) {
             return is_there(cluster_, backup);
           });
  });
}

// Whether of the closures that have got so far since the base some have not ended.
bool World::any_closure_beyond(std::size_t begun) const {
  return static_cast<std::int64_t>(begun) > finished() - base_.step;
}

bool World::is_being_saved(const Layout& layout) {
  return std::ranges::any_of(layout.shards, [this](const ShardLayout& shard) {
    const ps::Shard* const primary = primary_of(shard);
    return primary != nullptr && primary->counters().save.blocks.load() > 0;
  });
}

// Whether some place has tables of this session and is not in the layout yet.
bool World::catches_up(const Layout& layout) {
  const auto named = [&layout](int ps, std::uint32_t endpoint) {
    const auto is_it = [&](const ShardReplica& one) {
      return static_cast<int>(one.ps) == ps && one.endpoint == endpoint;
    };
    return std::ranges::any_of(layout.shards, [&is_it](const ShardLayout& shard) {
      return is_it(shard.primary) || std::ranges::any_of(shard.backups, is_it);
    });
  };
  for (int ps = 0; ps < scenario_.ps; ++ps)
    for (std::uint32_t place = 1; place <= scenario_.shards * scenario_.copies.replicas; ++place) {
      const ps::Shard* const shard =
          cluster_.has_ps(ps) ? cluster_.ps(ps).shard_at(place) : nullptr;
      if (shard != nullptr && shard->session() != 0 && !named(ps, place)) return true;
    }
  return false;
}

const ps::Shard* World::primary_of(const ShardLayout& shard) {
  if (!is_there(cluster_, shard.primary)) return nullptr;
  return cluster_.ps(static_cast<int>(shard.primary.ps)).shard_at(shard.primary.endpoint);
}

bool World::is_unanswered(const ShardLayout& shard) {
  const ps::Shard* const primary = primary_of(shard);
  return primary == nullptr || !primary->is_open() || primary->epoch() != shard.epoch;
}

bool World::is_rebuilt(const ShardLayout& shard) {
  const ps::Shard* const primary = primary_of(shard);
  return primary != nullptr && !primary->is_open();
}

bool World::writes_journal() {
  const auto& journal = cluster_.strategy().host().engine().options().session.journal;
  return journal != nullptr && !journal->are_kept(journal->noted());
}

}  // namespace cairn::simulation
