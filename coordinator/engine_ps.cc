// Parameter servers: connecting, watching, and rebuilding one that was lost.

#include <algorithm>

#include "coordinator/checkpoint_view.h"
#include "coordinator/engine.h"
#include "core/base/log.h"
#include "rpc/heartbeat.h"

namespace cairn {

rpc::Task<void> Engine::connect_ps(Ps* ps) {
  auto address = rpc::Address::parse(ps->address);
  auto control = co_await parts_.network.connect(parts_.reactor, address,
                                                 hello(rpc::kControlEndpoint), kConnectDeadline);
  const rpc::PeerInfo peer = control->peer();
  if (peer.role != rpc::Role::kPs)
    throw FailedPreconditionError(str(ps->name, ": at ", ps->address, " there is ", peer.name(),
                                      "; correct the cluster's addresses"));
  auto client = std::make_unique<PsControlClient>(std::move(control));
  co_await join(client.get(), ps, peer.incarnation);
  std::uint32_t shards = peer.endpoints - 1;
  if (started_) {
    std::uint32_t wanted = registry_->layout()->servers[ps->index].shards;
    if (shards != wanted)
      throw FailedPreconditionError(str(ps->name, " came back with ", shards, " shards, it had ",
                                        wanted, "; start it with --shards ", wanted));
  }
  std::vector<std::unique_ptr<ShardClient>> clients;
  // At the start it depends on how many shards the others have: start() numbers them when all are
  // there.
  const ShardId first = started_ ? registry_->layout()->servers[ps->index].first_shard : 0;
  for (std::uint32_t i = 0; i < shards; ++i) {
    auto connection =
        co_await parts_.network.connect(parts_.reactor, address, hello(1 + i), kConnectDeadline);
    clients.push_back(std::make_unique<ShardClient>(std::move(connection), first + i));
  }
  ps->shards = std::move(clients);
  ps->incarnation = peer.incarnation;
  ps->control = std::move(client);
}

rpc::Task<void> Engine::ps_loop(Ps* ps) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    if (ps->ready) {
      rpc::Silence silence = co_await silence_of(ps);
      lose_ps(*ps, silence.reason);
      backoff = kBackoffFirst;
    }
    try {
      co_await connect_ps(ps);
      co_await attach_in_time(ps);
    } catch (const Error& e) {
      ps->trouble = e.what();
      // no waiting makes a damaged checkpoint whole
      if (e.code() == Code::kDataLoss) give_up_ps(*ps, std::current_exception());
    }
    if (!ps->ready) {
      ps->shards.clear();
      ps->control.reset();
      if (parts_.clock.now() - ps->lost_at > options_.ps_wait)
        give_up_ps(*ps, std::make_exception_ptr(UnavailableError(
                            str(ps->name, " at ", ps->address, " has been away for ",
                                static_cast<int>(seconds_since(ps->lost_at)), " s: ", ps->trouble),
                            ps->name)));
      co_await parts_.reactor.sleep(backoff);
      backoff = std::min(backoff * 2, kBackoffMax);
    }
    pump();
  }
}

void Engine::give_up_ps(Ps& ps, std::exception_ptr error) {
  if (!std::exchange(ps.lost_for_good, true)) queue_->fail_all(error);
}

// Ends when the ps counts as lost: its process is silent, or any of its connections ended.
kj::Promise<rpc::Silence> Engine::silence_of(Ps* ps) {
  rpc::HeartbeatOptions beat{options_.heartbeat_interval, options_.heartbeats_missed_max};
  std::function<kj::Promise<void>()> ping = [ps] { return ps->control->ping(); };
  kj::Promise<rpc::Silence> silence =
      rpc::watch_heartbeat(parts_.reactor, ps->name, ping, beat).start();
  for (auto& shard : ps->shards) {
    rpc::Silence ended{ps->name, {}, "a shard's connection ended"};
    silence =
        silence.exclusiveJoin(shard->connection().on_disconnect().then([ended] { return ended; }));
  }
  return silence;
}

void Engine::lose_ps(Ps& ps, const std::string& reason) {
  ps.ready = false;
  ps.trouble = reason;
  ps.lost_at = parts_.clock.now();
  ps.shards.clear();
  ps.control.reset();
  ps.absence = losses_.lost(ps.name, reason, uptime());
  publish_losses();
  changed();
  if (options_.recovery) {
    log_warning(ps.name, " is lost (", reason, "); closures wait for it up to ",
                fixed(std::chrono::duration<double>(options_.ps_wait).count(), 0), " s");
    return;
  }
  log_error(ps.name, " is lost (", reason, "), and recovery is off");
  give_up_ps(
      ps, std::make_exception_ptr(UnavailableError(
              str(ps.name, " at ", ps.address, " is lost: ", reason,
                  ". Restart the cluster and restore the last checkpoint, or run with recovery on"),
              ps.name)));
}

bool Engine::all_ps_ready() const {
  return std::all_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps->ready; });
}

bool Engine::any_ps_given_up() const {
  return std::any_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps->lost_for_good; });
}

// A ps that falls silent while it is attached is given up like any other.
rpc::Task<void> Engine::attach_in_time(Ps* ps) {
  auto attached = attach_ps(ps).start().exclusiveJoin(give_up_in_silence(ps).start());
  co_await kj::mv(attached);
}

rpc::Task<void> Engine::give_up_in_silence(Ps* ps) {
  const rpc::Silence silence = co_await silence_of(ps);
  throw UnavailableError(str(ps->name, " was lost again: ", silence.reason), ps->name);
}

// Makes a connected ps part of the session: the same process with its state, or one that is rebuilt
// from the newest checkpoint.
rpc::Task<void> Engine::attach_ps(Ps* ps) {
  const std::uint64_t known = registry_->layout()->servers[ps->index].incarnation;
  // until it has them, however often it is lost meanwhile
  if (known != ps->incarnation) ps->needs_rows = true;
  // A checkpoint on its way to the disk is worth waiting for: it holds more than the one before.
  while (layout_busy_ || (ps->needs_rows && writing_)) co_await changed_.wait();
  const Busy busy(*this);
  registry_->set_incarnation(ps->index, ps->incarnation);
  const auto layout = registry_->layout();
  const bool rebuild = ps->needs_rows;
  auto source = newest_;
  co_await configure_shards(ps, layout, 0);
  if (rebuild)
    co_await rebuild_shards(ps, layout, source);
  else
    co_await restore_new_variables(ps, layout);  // what was under way when its connection ended
  std::uint64_t fences = 0;
  do {
    fences = fences_;
    co_await fence_lost_lanes_on(ps);
    co_await announce_to(ps, next_announcement());
    for (std::size_t s = 0; s < ps->shards.size(); ++s) co_await ps->shards[s]->open();
  } while (fences != fences_);
  ps->needs_rows = false;
  ++ps->attached;
  ps->served = ps->incarnation;
  if (rebuild) note_rebuilt(*ps, layout->version, source);
  ps->ready = true;
  ps->trouble.clear();
  synced(layout);
  if (!started_) co_return;
  const double away = seconds_since(ps->lost_at);
  log_info(ps->name, " is back after ", fixed(away, 2), " s",
           rebuild ? ", rebuilt" : " with its state");
  losses_.back(ps->absence, away);
  publish_losses();
}

void Engine::note_rebuilt(Ps& ps, std::uint64_t version,
                          std::shared_ptr<const CheckpointView> source) {
  LossLedger::Rebuilt how{.layout_version = version, .absence = ps.absence};
  if (source) how.from = source->holdings;
  if (source && source->session == session_)
    how.has = [source](std::uint64_t sequence) { return source->applied.contains(sequence); };
  const std::uint64_t lost = losses_.rebuilt(ps.index, std::move(how));
  if (lost > 0) log_warning(lost, " updates since the last checkpoint are lost on ", ps.name);
  publish_losses();
}

void Engine::publish_losses() {
  std::lock_guard hold(shared_mutex_);
  stats_.losses = losses_.reports();
  stats_.lost_updates = losses_.lost_updates();
}

}  // namespace cairn
