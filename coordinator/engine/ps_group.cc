#include "coordinator/engine/ps_group.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace cairn {

rpc::Task<void> PsGroup::connect(Ps* ps) {
  auto address = rpc::Address::parse(ps->address);
  auto control = co_await dialer_.dial(ps);
  const rpc::PeerInfo peer = control->connection().peer();
  std::uint32_t shards = peer.endpoints - 1;
  if (session_.started) {
    if (shards != ps->shard_count)
      throw FailedPreconditionError(str(ps->name, " came back with ", shards, " shards, it had ",
                                        ps->shard_count, "; start it with --shards ",
                                        ps->shard_count));
  }
  std::vector<std::unique_ptr<ShardClient>> clients;
  // At the start the number of a ps's first shard depends on how many shards the others have:
  // Engine::start() numbers them when all are there.
  for (std::uint32_t i = 0; i < shards; ++i) {
    auto connection = co_await dialer_.connect(address, 1 + i);
    clients.push_back(std::make_unique<ShardClient>(std::move(connection), ps->first_shard + i));
  }
  // All or nothing: until every shard is connected the ps has none, so that a loop over the shards
  // never sees half of them.
  ps->shards = std::move(clients);
  ps->process = peer.incarnation;
  ps->control = std::move(control);
}

rpc::Task<void> PsGroup::keep(Ps* ps) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    if (ps->ready) {
      rpc::Silence silence = co_await silence_of(ps);
      lose(*ps, silence.reason);
      backoff = kBackoffFirst;
      if (ps->flapping.losses() > 1) co_await wait_longer(ps);
    }
    try {
      co_await connect(ps);
      co_await attach_in_time(ps);
    } catch (const Error& e) {
      ps->trouble = e.what();
      // No waiting makes a damaged checkpoint whole.
      if (e.code() == Code::kDataLoss) give_up(*ps, std::current_exception());
    }
    if (!ps->ready) {
      ps->shards.clear();
      ps->control.reset();
      if (session_.parts.clock.now() - ps->lost_at > session_.options.ps_wait)
        give_up(*ps,
                std::make_exception_ptr(UnavailableError(
                    str(ps->name, " at ", ps->address, " has been away for ",
                        static_cast<int>(session_.seconds_since(ps->lost_at)), " s: ", ps->trouble),
                    ps->name)));
      co_await session_.parts.reactor.sleep(backoff);
      backoff = std::min(backoff * 2, kBackoffMax);
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
  for (auto& shard : ps->shards) {
    rpc::Silence ended{ps->name, {}, "a shard's connection ended"};
    silence =
        silence.exclusiveJoin(shard->connection().on_disconnect().then([ended] { return ended; }));
  }
  return silence;
}

// The clients go at once. Coroutines that wait for one of their calls end with an error, and those
// that walk through the shards look at the list afresh after each wait.
void PsGroup::lose(Ps& ps, const std::string& reason) {
  ps.ready = false;
  ps.trouble = reason;
  ps.lost_at = session_.parts.clock.now();
  // A restore that is under way waits for this ps too.
  const QueueCounts counts = session_.queue.counts();
  ps.flapping.lost(ps.lost_at, counts.finished,
                   counts.queued + counts.inflight > 0 || ps.needs_rows);
  ps.shards.clear();
  ps.control.reset();
  ps.absence = losses_.lost(ps.name, reason, session_.uptime());
  session_.stats.publish(losses_);
  session_.changed.notify_all();
  if (session_.options.recovery) {
    log_warning(ps.name, " is lost (", reason, "); closures wait for it up to ",
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
  const rpc::Silence silence = co_await silence_of(ps);
  throw UnavailableError(str(ps->name, " was lost again: ", silence.reason), ps->name);
}

rpc::Task<void> PsGroup::attach(Ps* ps) {
  const ProcessIncarnation known =
      tables_.registry().layout()->shards[ps->first_shard].primary.process;
  // It needs them until it has all of them, however often it is lost meanwhile.
  if (known != ps->process) ps->needs_rows = true;
  // A checkpoint on its way to the disk is worth waiting for: it holds more than the one before.
  while (lock_.held() || (ps->needs_rows && sources_.writing)) co_await session_.changed.wait();
  const TableLock::Hold hold(lock_);
  // A new process makes a new version of the layout, and a new epoch of each of its shards. The
  // shard refuses pushes that were sent by an older version, and whatever names an older epoch: so
  // nothing that was meant for the lost process lands on this one.
  tables_.registry().set_primary(ps->first_shard, ps->shard_count, ps->process);
  const auto layout = tables_.registry().layout();
  const bool rebuild = ps->needs_rows;
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
  ps->needs_rows = false;
  ++ps->attached;
  ps->served = ps->process;
  ps->ready = true;
  ps->trouble.clear();
  tables_.attached(layout);
  tables_.follow_restore(ps);
  if (!session_.started) co_return;
  const double away = session_.seconds_since(ps->lost_at);
  log_info(ps->name, " is back after ", fixed(away, 2), " s",
           rebuild ? ", rebuilt" : " with its state");
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
  if (recorder_.on()) co_await recorder_.keep_rebuilt(ps->index, ps->process, std::move(how));
}

}  // namespace cairn
