#include "coordinator/engine/workers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "rpc/server/heartbeat.h"

namespace cairn {
namespace {
constexpr Duration kConfigureDeadline = std::chrono::seconds(10);
}  // namespace

rpc::Task<void> Workers::connect(Worker* worker) {
  auto address = rpc::Address::parse(worker->address);
  auto control = co_await dialer_.dial(worker);
  const rpc::PeerInfo peer = control->connection().peer();
  std::uint32_t lanes = policy_.lanes_used(*worker, peer.endpoints - 1);
  // Datasets were dealt out to the lanes that were there at the start. Further lanes of a worker
  // that comes back with more have no pipelines, and are not used.
  if (session_.started) lanes = std::min(lanes, static_cast<std::uint32_t>(worker->lanes.size()));
  while (worker->lanes.size() < lanes) {
    worker->lanes.push_back(std::make_unique<LaneState>());
    worker->lanes.back()->worker = worker;
    worker->lanes.back()->index = static_cast<std::uint32_t>(worker->lanes.size() - 1);
  }
  for (std::uint32_t i = 0; i < lanes; ++i) {
    auto connection = co_await dialer_.connect(address, 1 + i);
    worker->lanes[i]->client = std::make_unique<LaneClient>(std::move(connection));
  }
  worker->process = peer.incarnation;
  worker->control = std::move(control);
}

rpc::Task<void> Workers::configure(Worker* worker) {
  for (auto& lane : worker->lanes) {
    if (!lane->client) continue;
    // The number is new even for the same process: what the lane sent by its last connection may
    // still be on its way to a shard, which must be able to tell the two apart.
    lane->incarnation = fence_.next_incarnation();
    scheduler_.renew(*lane);
    lane->tasks = std::make_unique<rpc::TaskGroup>();
    LaneConfiguration configuration{session_.number,
                                    lane->index,
                                    session_.options.pipeline_depth,
                                    lane->incarnation,
                                    session_.options.bfloat16_wire,
                                    session_.options.computing.products,
                                    session_.options.variables.check_replicas,
                                    session_.options.computing.deterministic};
    std::string what = str("configuring ", worker->name);
    co_await session_.parts.reactor.with_deadline(lane->client->configure(configuration),
                                                  kConfigureDeadline, what);
  }
  for (auto& lane : worker->lanes) {
    // Only once all are configured: if one of them fails, the worker is connected anew, and a lane
    // that had been sent closures already would lose them unnoticed.
    lane->ready = lane->client != nullptr;
    scheduler_.admit(*lane);
  }
  worker->ready = true;
  worker->served = worker->process;
  worker->trouble.clear();
}

rpc::Task<void> Workers::keep(Worker* worker) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    if (worker->ready) {
      co_await watch(worker);
      co_await give_up(worker);
      backoff = kBackoffFirst;
      if (const Duration pause = worker->flapping.pause(); pause > Duration(0))
        co_await session_.parts.reactor.sleep(pause);
    }
    try {
      co_await connect(worker);
      co_await configure(worker);
    } catch (const Error& e) {
      worker->trouble = e.what();
    }
    if (worker->ready) {
      double away = session_.seconds_since(worker->lost_at);
      log_info(worker->name, " is back after ", fixed(away, 2), " s");
      losses_.back(worker->absence, away);
      session_.stats.publish(losses_);
    } else {
      co_await session_.parts.reactor.sleep(backoff);
      backoff = std::min(backoff * 2, kBackoffMax);
    }
    scheduler_.pump();
  }
}

// Returns when the worker counts as lost: its process is silent, or any of its connections ended.
rpc::Task<void> Workers::watch(Worker* worker) {
  rpc::HeartbeatOptions beat{session_.options.heartbeats.interval,
                             session_.options.heartbeats.missed_max};
  std::function<kj::Promise<void>()> ping = [worker] { return worker->control->ping(); };
  kj::Promise<rpc::Silence> silence =
      rpc::watch_heartbeat(session_.parts.reactor, worker->name, ping, beat).start();
  for (auto& lane : worker->lanes) {
    // The worker came back with fewer lanes than it had.
    if (!lane->client) continue;
    rpc::Silence ended{worker->name, {}, "a lane's connection ended"};
    silence = silence.exclusiveJoin(
        lane->client->connection().on_disconnect().then([ended] { return ended; }));
  }
  rpc::Silence what = co_await kj::mv(silence);
  worker->trouble = what.reason;
}

rpc::Task<void> Workers::give_up(Worker* worker) {
  // First of all nothing more is sent to the worker. Its closures are gathered before the fence,
  // and queued only behind it.
  worker->ready = false;
  worker->lost_at = session_.parts.clock.now();
  std::uint64_t answered = worker->flapping.done();
  for (const auto& lane : worker->lanes) answered += lane->answers;
  const QueueCounts counts = session_.queue.counts();
  worker->flapping.lost(worker->lost_at, answered, counts.queued + counts.inflight > 0);
  std::vector<std::shared_ptr<Closure>> interrupted;
  for (auto& lane : worker->lanes) scheduler_.abandon(*lane, interrupted);
  worker->control.reset();
  // From here on others can see the loss. The interrupted closures are held by this coroutine
  // alone.
  log_warning(worker->name, " is lost (", worker->trouble, "); ", interrupted.size(),
              " closures go to other workers");
  worker->absence = losses_.lost(worker->name, worker->trouble, session_.uptime());
  session_.stats.publish(losses_);
  session_.changed.notify_all();
  // No shard may take from a lost lane what another lane is about to do again.
  co_await fence_.raise();
  for (auto& closure : interrupted) session_.queue.put_back(std::move(closure));
}

// Since when a worker is of no use: it is away, or comes and goes with no closure answered. Empty:
// it may be at work.
std::optional<TimePoint> Workers::useless_since(const Worker& worker) {
  if (worker.ready && worker.flapping.losses() < 2) return std::nullopt;
  std::uint64_t answered = 0;
  for (const auto& lane : worker.lanes) answered += lane->answers;
  if (worker.ready && answered > 0) return std::nullopt;
  return worker.flapping.losses() > 0 ? worker.flapping.since() : worker.lost_at;
}

// One that is there may be at work on a long closure: the error waits until it is lost, too.
rpc::Task<void> Workers::watch_for_none() {
  bool told = false;
  TimePoint failed{};
  for (;;) {
    co_await session_.parts.reactor.sleep(session_.options.heartbeats.interval);
    std::string names;
    bool any = false, any_ready = false;
    TimePoint since = failed;
    for (auto& worker : members_.workers) {
      const auto useless = useless_since(*worker);
      any |= !useless;
      any_ready |= worker->ready;
      since = std::max(since, useless.value_or(since));
      names += str(names.empty() ? "" : ", ", worker->name, " at ", worker->address, " (",
                   worker->trouble,
                   worker->flapping.losses() > 1
                       ? str("; come and gone ", worker->flapping.losses(), " times")
                       : "",
                   ")");
    }
    told &= !any;
    if (any || any_ready) continue;
    const double wait = std::chrono::duration<double>(session_.options.worker_wait).count();
    if (!std::exchange(told, true))
      log_warning("no worker is left: ", names, ". Waiting ", fixed(wait, 0),
                  " s for one to come back");
    if (session_.parts.clock.now() - since <= session_.options.worker_wait) continue;
    session_.queue.fail_all(std::make_exception_ptr(
        UnavailableError(str("no worker could be reached for ", wait, " s: ", names))));
    failed = session_.parts.clock.now();
  }
}

}  // namespace cairn
