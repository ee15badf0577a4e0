#include "coordinator/engine/replica_keeper.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "core/base/log.h"

namespace cairn {
namespace {

// Before a backup that could not follow is tried again.
constexpr Duration kPause = std::chrono::milliseconds(500);

bool same_place(const ShardReplica& a, const ShardReplica& b) {
  return a.ps == b.ps && a.endpoint == b.endpoint && a.process == b.process;
}

const BackupState* state_of(const BackupNews& news, const ShardReplica& backup) {
  for (const BackupState& state : news.backups)
    if (same_place(state.backup, backup)) return &state;
  return nullptr;
}

const ShardPlace* place_of(const PlacedShard& shard, const ShardReplica& backup) {
  for (const ShardPlace& place : shard.places)
    if (place.client && place.host->control && same_place(place.replica(), backup)) return &place;
  return nullptr;
}

bool same_tables(const Layout& a, const Layout& b) {
  return std::ranges::equal(a.variables, b.variables, {}, &VariableLayout::rule,
                            &VariableLayout::rule);
}

}  // namespace

void ReplicaKeeper::run() {
  if (session_.options.recovery.replicas < 2) return;
  for (const auto& ps : members_.ps)
    for (std::size_t s = 0; s < ps->placed.size(); ++s)
      session_.tasks.spawn(str("backups of shard ", ps->placed[s].number), keep(ps.get(), s));
}

rpc::Task<void> ReplicaKeeper::keep(Ps* ps, std::size_t shard) {
  for (std::string before;;) {
    while (!ps->ready) co_await session_.changed.wait();
    std::string trouble;
    try {
      co_await keep_while_it_serves(ps, shard);
    } catch (const UnavailableError&) {  // PsGroup sees the loss
    } catch (const Error& error) {
      trouble = error.what();
    }
    if (!trouble.empty() && trouble != before)
      log_warning("shard ", ps->placed[shard].number, " of ", ps->name,
                  " is without backups: ", trouble);
    before = trouble;
    co_await session_.parts.reactor.sleep(trouble.empty() ? kPause / 10 : kPause);
  }
}

// A backup is in the layout only while the primary tells that it has caught up and is not in
// trouble. While one is in the layout and that is not so, the primary is told of no others: one
// that it would begin anew with is not waited for.
rpc::Task<void> ReplicaKeeper::keep_while_it_serves(Ps* ps, std::size_t shard) {
  auto primary = std::make_shared<Primary>(
      Primary{ps, &ps->placed[shard], ps->shards.at(shard), ps->attached});
  // A primary without backups can be replaced as well, so its lease begins here.
  if (tables_.registry().layout()->shards[primary->shard->number].backups.empty())
    co_await tell(primary, {});
  else
    primary->news = co_await primary->client->await_backups(session_.number, 0);
  if (!primary->serves()) co_return;
  rpc::TaskGroup listening;
  listening.spawn("how backups stand", listen(primary));
  while (primary->serves()) {
    const bool left = co_await leave_layout(primary);
    if (left) continue;
    if (primary->serves()) co_await join_layout(primary);
    if (primary->serves()) co_await name_backups(primary);
    if (!primary->serves()) co_return;
    auto pause = session_.parts.reactor.sleep(kPause).exclusiveJoin(session_.changed.wait());
    co_await kj::mv(pause);
  }
}

rpc::Task<void> ReplicaKeeper::listen(std::shared_ptr<Primary> primary) {
  try {
    while (primary->serves()) {
      primary->news =
          co_await primary->client->await_backups(session_.number, primary->news.version);
      session_.changed.notify_all();
    }
  } catch (const Error&) {
    primary->silent = true;
    session_.changed.notify_all();
  }
}

// The primary may have begun anew with one of them: its word of before is of no use any more.
rpc::Task<void> ReplicaKeeper::tell(std::shared_ptr<Primary> primary,
                                    std::vector<ShardReplica> backups) {
  if (!primary->serves()) co_return;
  // Under HybridStrategy a round is over once one shard has applied it, and must not be lost on
  // another one with the primary that had its share.
  const bool shares = HybridConsistency::is(session_.options.consistency);
  co_await primary->client->set_backups(session_.number, std::move(backups), shares);
  if (!primary->serves()) co_return;
  primary->news = co_await primary->client->await_backups(session_.number, 0);
}

rpc::Task<void> ReplicaKeeper::change_layout(ShardId shard, std::vector<ShardReplica> backups) {
  tables_.registry().set_backups(shard, std::move(backups));
  tables_.backups_changed(co_await tables_.keep_layout());
  session_.changed.notify_all();
  pump_();
}

// True: some have left it. The primary goes on without them once that is kept.
rpc::Task<bool> ReplicaKeeper::leave_layout(std::shared_ptr<Primary> primary) {
  const PlacedShard& shard = *primary->shard;
  const auto before = tables_.registry().layout()->shards[shard.number].backups;
  std::vector<ShardReplica> stay;
  for (const ShardReplica& backup : before) {
    const BackupState* state = state_of(primary->news, backup);
    if (place_of(shard, backup) != nullptr && state != nullptr && state->caught_up &&
        state->trouble.empty()) {
      stay.push_back(backup);
      continue;
    }
    log_warning("shard ", shard.number, " has no backup in sync any more on ",
                members_.ps.at(backup.ps)->name, ": ",
                state != nullptr && !state->trouble.empty() ? state->trouble : "it is lost");
  }
  if (stay.size() == before.size()) co_return false;
  co_await change_layout(shard.number, stay);
  co_await tell(primary, std::move(stay));
  co_return true;
}

rpc::Task<void> ReplicaKeeper::join_layout(std::shared_ptr<Primary> primary) {
  const PlacedShard& shard = *primary->shard;
  std::vector<ShardReplica> all = tables_.registry().layout()->shards[shard.number].backups;
  const std::size_t before = all.size();
  for (const BackupState& state : primary->news.backups) {
    const ShardPlace* place = place_of(shard, state.backup);
    const bool known = std::ranges::any_of(
        all, [&state](const ShardReplica& one) { return same_place(one, state.backup); });
    if (known || !state.caught_up || !state.trouble.empty() || place == nullptr || !place->follows)
      continue;
    all.push_back(place->replica());
    log_info(place->host->name, " follows shard ", shard.number, " and has all of its rows; ",
             state.row_bytes, " bytes were copied");
  }
  if (all.size() != before) co_await change_layout(shard.number, std::move(all));
}

// Those that are there, and do not follow yet or no more. The TableLock is not taken, under which
// no closure is sent: to make large tables takes time, and nobody uses these yet. Who has it may be
// about to bring the shard other rows, and then what the primary has told is of the old ones.
rpc::Task<void> ReplicaKeeper::name_backups(std::shared_ptr<Primary> primary) {
  PlacedShard& shard = *primary->shard;
  const TimePoint now = session_.parts.clock.now();
  const auto wanted = [&](const ShardPlace& place) {
    if (&place == &shard.at() || !place.client || !place.host->control) return false;
    const BackupState* state = state_of(primary->news, place.replica());
    const bool follows = place.follows && state != nullptr && state->trouble.empty();
    // One that could not follow may not be able to now.
    return !follows && (!place.follows || now - place.named_at >= kPause);
  };
  if (lock_.held() || tables_.synced()->variables.empty() ||
      std::ranges::none_of(shard.places, wanted))
    co_return;
  const auto layout = co_await tables_.keep_layout();
  const auto last = static_cast<VariableId>(layout->variables.size());
  std::vector<ShardReplica> backups;
  for (ShardPlace& place : shard.places) {
    if (&place == &shard.at() || !place.client || !place.host->control) continue;
    const ShardReplica replica = place.replica();
    if (wanted(place)) {
      try {
        co_await place.client->configure(session_.number, layout, 0, last);
      } catch (const UnavailableError&) {  // it is being lost
        continue;
      }
      if (!primary->serves()) co_return;
      // From here on it is sent what the primary is; until now it may have missed some of that.
      if (lock_.held() || !same_tables(*layout, *tables_.registry().layout())) co_return;
      if (!place.client || !same_place(place.replica(), replica)) continue;
      place.follows = true;
      place.named_at = now;
      place.host->served = replica.process;
    }
    backups.push_back(replica);
  }
  co_await tell(primary, std::move(backups));
}

}  // namespace cairn
