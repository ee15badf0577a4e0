#include "coordinator/engine/ps_group.h"

#include <algorithm>
#include <utility>

#include "coordinator/engine/primary_choice.h"
#include "core/base/log.h"

namespace cairn {
namespace {

// With replicas: if all processes that have a shard's rows are away for so long, it goes on from
// the newest checkpoint on another one. A primary that is cut off answers for less than that.
constexpr Duration kRowsPatience = std::chrono::seconds(10);

bool has_primary_on(const Ps& ps, const Ps& process) {
  return std::ranges::any_of(
      ps.placed, [&process](const PlacedShard& shard) { return shard.at().host == &process; });
}

}  // namespace

rpc::Task<void> PsGroup::connect(Ps* ps) {
  auto address = rpc::Address::parse(ps->address);
  auto control = co_await dialer_.dial(ps);
  const rpc::PeerInfo peer = control->connection().peer();
  const std::uint32_t shards = peer.endpoints - 1;
  const bool placed = !ps->hosted.empty();
  if (placed && shards != ps->shard_count)
    throw FailedPreconditionError(str(ps->name, " came back with ", shards, " shards, it had ",
                                      ps->shard_count, "; start it with --shards ",
                                      ps->shard_count));
  // All or nothing: until every shard is connected the ps has none.
  std::vector<std::unique_ptr<ShardClient>> clients;
  if (placed) {
    for (const ShardPlace* place : ps->hosted)
      clients.push_back(std::make_unique<ShardClient>(
          co_await dialer_.connect(address, place->endpoint), place->shard));
    for (std::size_t i = 0; i < clients.size(); ++i) ps->hosted[i]->client = std::move(clients[i]);
  } else {
    std::vector<PlacedShard> own(shards);
    for (std::uint32_t i = 0; i < shards; ++i) {
      auto connection = co_await dialer_.connect(address, 1 + i);
      own[i].places.push_back({ps, 1 + i, std::make_unique<ShardClient>(std::move(connection), i)});
    }
    ps->placed = std::move(own);
  }
  ps->process = peer.incarnation;
  ps->control = std::move(control);
}

rpc::Task<void> PsGroup::connect_places(Ps* ps) {
  const auto address = rpc::Address::parse(ps->address);
  for (ShardPlace* place : ps->hosted) {
    if (place->client) continue;
    auto connection = co_await dialer_.connect(address, place->endpoint);
    place->client = std::make_unique<ShardClient>(std::move(connection), place->shard);
  }
}

rpc::Task<void> PsGroup::keep(Ps* ps) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    if (ps->control) {
      rpc::Silence silence = co_await silence_of(ps);
      const bool served = lose(*ps, silence.reason);
      if (served) backoff = kBackoffFirst;
      if (served && ps->flapping.losses() > 1) co_await wait_longer(ps);
    }
    try {
      co_await connect(ps);
      session_.changed.notify_all();
      continue;
    } catch (const Error& e) {
      if (!ps->ready) ps->trouble = e.what();
    }
    co_await session_.parts.reactor.sleep(backoff);
    backoff = std::min(backoff * 2, kBackoffMax);
  }
}

rpc::Task<void> PsGroup::serve(Ps* ps) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    while (ps->ready) {
      backoff = kBackoffFirst;
      co_await session_.changed.wait();
    }
    bool tried = false;
    try {
      if (choose_primaries(*ps)) {
        tried = true;
        co_await attach_in_time(ps);
      }
    } catch (const Error& e) {
      ps->trouble = e.what();
      // No waiting makes a damaged checkpoint whole.
      if (e.code() == Code::kDataLoss) give_up(*ps, std::current_exception());
    }
    if (!ps->ready) {
      // Calls of the attempt that came to nothing may still be at work there: what comes over
      // another connection ends them. With replicas a process answers for other shards as well.
      if (tried && session_.options.recovery.replicas == 1) members_.cut_off(*ps);
      ps->shards.clear();
      if (session_.parts.clock.now() - ps->lost_at > session_.options.ps_wait)
        give_up(*ps,
                std::make_exception_ptr(UnavailableError(
                    str(ps->name, " at ", ps->address, " has been away for ",
                        static_cast<int>(session_.seconds_since(ps->lost_at)), " s: ", ps->trouble),
                    ps->name)));
      auto pause = session_.parts.reactor.sleep(backoff);
      if (!tried) pause = pause.exclusiveJoin(session_.changed.wait());
      co_await kj::mv(pause);
      if (tried) backoff = std::min(backoff * 2, kBackoffMax);
    }
    pump_();
  }
}

// For a ps that was lost once more before any closure was done. The cause, say another coordinator,
// or a program that crashes the ps at each pull, should be seen in the log, and must not keep the
// cluster busy.
rpc::Task<void> PsGroup::wait_longer(Ps* ps) {
  co_await session_.parts.reactor.sleep(ps->flapping.pause());
  const TimePoint now = session_.parts.clock.now();
  if (ps->flapping.out_of_patience(now, session_.queue.counts().finished, session_.options.ps_wait))
    give_up(*ps,
            std::make_exception_ptr(UnavailableError(
                str(ps->name, " at ", ps->address, " has come and gone ", ps->flapping.losses(),
                    " times in ", static_cast<int>(session_.seconds_since(ps->flapping.since())),
                    " s, and no closure was done: ", ps->trouble),
                ps->name)));
}

// Fails the queue once, however often the ps is missing afterwards. Its loop goes on dialling.
void PsGroup::give_up(Ps& ps, std::exception_ptr error) {
  if (std::exchange(ps.lost_for_good, true)) return;
  session_.queue.fail_all(error);
  session_.changed.notify_all();  // a save or a restore that waits for this ps waits in vain
}

// Ends when the ps counts as lost: its process is silent, or any of its connections ended.
kj::Promise<rpc::Silence> PsGroup::silence_of(Ps* ps) {
  rpc::HeartbeatOptions beat{session_.options.heartbeats.interval,
                             session_.options.heartbeats.missed_max};
  std::function<kj::Promise<void>()> ping = [ps] { return ps->control->ping(); };
  kj::Promise<rpc::Silence> silence =
      rpc::watch_heartbeat(session_.parts.reactor, ps->name, ping, beat).start();
  for (const ShardPlace* place : ps->hosted) {
    if (place->client == nullptr) continue;
    rpc::Silence ended{ps->name, {}, "a shard's connection ended"};
    silence = silence.exclusiveJoin(
        place->client->connection().on_disconnect().then([ended] { return ended; }));
  }
  return silence;
}

// Returns whether it answered for shards. The clients go at once. Coroutines that wait for one of
// their calls end with an error, and those that walk through the shards look at the list afresh
// after each wait.
bool PsGroup::lose(Ps& process, const std::string& reason) {
  const bool served = std::ranges::any_of(members_.ps, [&process](const auto& ps) {
    return ps->in_service && has_primary_on(*ps, process);
  });
  const TimePoint now = session_.parts.clock.now();
  // A restore that is under way waits for this ps too.
  const QueueCounts counts = session_.queue.counts();
  if (served)
    process.flapping.lost(now, counts.finished,
                          counts.queued + counts.inflight > 0 || process.needs_rows());
  for (const auto& ps : members_.ps)
    if (has_primary_on(*ps, process)) lose_shards(*ps, process, reason);
  for (ShardPlace* place : process.hosted) {
    place->client.reset();
    place->follows = false;
  }
  process.control.reset();
  session_.stats.publish(losses_);
  session_.changed.notify_all();
  return served;
}

void PsGroup::lose_shards(Ps& ps, const Ps& process, const std::string& reason) {
  const bool own = &ps == &process;
  ps.ready = false;
  ps.trouble = own ? reason : str(process.name, ", which had its shards, is lost: ", reason);
  ps.shards.clear();
  // One that was lost before it served has not come back yet.
  if (!std::exchange(ps.in_service, false)) return;
  ps.lost_at = session_.parts.clock.now();
  ps.absence = losses_.lost(ps.name, ps.trouble, session_.uptime());
  if (session_.options.recovery) {
    log_warning(
        ps.name, own ? " is lost (" : ": ", ps.trouble, own ? ")" : "", "; closures wait for ",
        session_.options.recovery.replicas > 1 ? "backups to take over, or " : "", "it up to ",
        fixed(std::chrono::duration<double>(session_.options.ps_wait).count(), 0), " s");
    return;
  }
  log_error(ps.name, " is lost (", reason, "), and recovery is off");
  give_up(ps,
          std::make_exception_ptr(UnavailableError(
              str(ps.name, " at ", ps.address, " is lost: ", reason,
                  ". Restart the cluster and restore the last checkpoint, or run with recovery on"),
              ps.name)));
}

rpc::Task<void> PsGroup::attach_in_time(Ps* ps) {
  // Whichever ends first cancels the other. A cancelled attach releases the table lock with its
  // frame, so that a ps that stands still does not keep the others from their tables.
  auto attached = attach(ps).start().exclusiveJoin(give_up_in_silence(ps).start());
  co_await kj::mv(attached);
}

rpc::Task<void> PsGroup::give_up_in_silence(Ps* ps) {
  kj::Promise<rpc::Silence> first = kj::NEVER_DONE;
  std::vector<const Ps*> asked;
  for (const PlacedShard& shard : ps->placed) {
    Ps* const host = shard.at().host;
    if (std::ranges::find(asked, host) != asked.end()) continue;
    asked.push_back(host);
    if (host->control) first = first.exclusiveJoin(silence_of(host));
  }
  const rpc::Silence silence = co_await kj::mv(first);
  throw UnavailableError(str(ps->name, " was lost again: ", silence.reason), ps->name);
}

// False: some shard cannot be answered for yet. What is chosen is not told to anybody here.
bool PsGroup::choose_primaries(Ps& ps) {
  const auto layout = tables_.registry().layout();
  const bool wait = session_.parts.clock.now() - ps.lost_at < kRowsPatience;
  std::vector<PrimaryChoice> choices;
  for (const PlacedShard& shard : ps.placed) {
    std::vector<PlaceNow> places;
    for (const ShardPlace& place : shard.places)
      places.push_back({place.replica(), place.host->control && place.client});
    const auto choice =
        choose_primary(places, layout->shards[shard.number], !shard.needs_rows, wait);
    if (!choice) return false;
    choices.push_back(*choice);
  }
  for (std::size_t s = 0; s < choices.size(); ++s) {
    PlacedShard& shard = ps.placed[s];
    shard.primary = choices[s].place;
    // It needs them until it has all of them, however often it is lost meanwhile.
    if (!choices[s].has_rows) shard.needs_rows = true;
  }
  return !choices.empty();
}

rpc::Task<void> PsGroup::attach(Ps* ps) {
  // A checkpoint on its way to the disk is worth waiting for: it holds more than the one before.
  while (lock_.held() || (ps->needs_rows() && sources_.writing)) co_await session_.changed.wait();
  const TableLock::Hold hold(lock_);
  if (!choose_primaries(*ps)) throw UnavailableError(str(ps->name, " was lost again"), ps->name);
  // Under the lock only: whoever has it takes what is there for the ps's own, and opens it.
  ps->shards.clear();
  for (PlacedShard& shard : ps->placed) ps->shards.push_back(shard.at().client.get());
  // Another process makes a new version of the layout, and a new epoch of the shard. It refuses
  // whatever names an older epoch: so nothing that was meant for the lost process lands on it.
  bool moved = false;
  for (PlacedShard& shard : ps->placed) {
    const ShardReplica primary = shard.at().replica();
    // An earlier attempt may have chosen it, and not have come to its end.
    if (tables_.synced()->shards[shard.number].primary != primary) moved = true;
    if (tables_.registry().layout()->shards[shard.number].primary == primary) continue;
    tables_.registry().set_primary(shard.number, primary);
    for (ShardPlace& place : shard.places) place.follows = false;
  }
  const auto layout = tables_.registry().layout();
  const bool rebuild = ps->needs_rows();
  auto source = sources_.newest;
  co_await tables_.configure(ps, layout, 0);
  if (rebuild) {
    co_await tables_.rebuild(ps, layout, source);
    co_await keep_rebuilt(ps, layout->version, source);
  } else {
    co_await tables_.restore_new(ps, layout);  // the restore may have been cut short
  }
  // Opened last, and again if a lane was lost after its fence: such a lane is not to push here.
  std::uint64_t fences = 0;
  do {
    fences = fence_.raised();
    co_await fence_.raise_on(ps);
    co_await unrecorded_.ask(ps);
    const Announcer::Word word = announcer_.next();
    if (recorder_.on()) co_await recorder_.keep_announced(word.closures_below);
    co_await announcer_.tell(ps, word);
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
  } while (fences != fence_.raised());
  if (ps->shards.empty()) throw UnavailableError(str(ps->name, " was lost again"), ps->name);
  ps->set_needs_rows(false);
  ++ps->attached;
  // A backup that took over has the very rows that the lost primary had.
  const bool as_they_were = moved && !rebuild;
  if (!as_they_were) ++ps->rows_may_differ;
  for (PlacedShard& shard : ps->placed) shard.served = shard.at().host->process;
  ps->in_service = ps->ready = true;
  ps->trouble.clear();
  tables_.attached(layout);
  tables_.follow_restore(ps);
  // Calls to a process that only stands still end as soon as the lanes know that it is not asked
  // any more.
  if (moved && session_.started) members_.urgent_layout = layout->version;
  session_.changed.notify_all();
  if (!session_.started) co_return;
  const double away = session_.seconds_since(ps->lost_at);
  log_info(ps->name, " is back after ", fixed(away, 2), " s",
           rebuild ? ", rebuilt"
           : moved ? ", its shards with those that have the rows"
                   : " with its state");
  losses_.back(ps->absence, away);
  session_.stats.publish(losses_);
}

// Before the ps opens: a successor that does not know of this gives it its rows once more, and
// without what was pushed to it meanwhile. If the ps is lost before it has opened, it is rebuilt
// again, and its loss is not counted twice.
rpc::Task<void> PsGroup::keep_rebuilt(Ps* ps, std::uint64_t version,
                                      std::shared_ptr<const CheckpointView> source) {
  LossLedger::Rebuilt how{.layout_version = version, .absence = ps->absence};
  if (source) how.from = source->holdings;
  // Sequence numbers mean something within one session only: of a checkpoint of an earlier one no
  // closure is ours.
  if (source && source->session == session_.number)
    how.has = std::shared_ptr<const AppliedClosures>(source, &source->applied);
  const std::uint64_t lost = losses_.rebuilt(ps->index, how);
  if (lost > 0) log_warning(lost, " updates since the last checkpoint are lost on ", ps->name);
  session_.stats.publish(losses_);
  if (!recorder_.on()) co_return;
  std::vector<ProcessIncarnation> processes;
  for (const PlacedShard& shard : ps->placed)
    processes.push_back(shard.needs_rows ? shard.at().host->process : ProcessIncarnation());
  co_await recorder_.keep_rebuilt(ps->index, std::move(processes), std::move(how));
}

}  // namespace cairn
