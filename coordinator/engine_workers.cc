// Workers: connecting, watching, and what happens when one is lost.

#include "coordinator/engine.h"
#include "core/base/log.h"
#include "rpc/heartbeat.h"

namespace cairn {
namespace {
constexpr Duration kConfigureDeadline = std::chrono::seconds(10);
}  // namespace

rpc::Task<void> Engine::connect_worker(Worker* worker) {
  auto address = rpc::Address::parse(worker->address);
  auto control = co_await parts_.network.connect(parts_.reactor, address,
                                                 hello(rpc::kControlEndpoint), kConnectDeadline);
  const rpc::PeerInfo peer = control->peer();
  if (peer.role != rpc::Role::kWorker)
    throw FailedPreconditionError(str(worker->name, ": at ", worker->address, " there is ",
                                      peer.name(), "; correct the cluster's addresses"));
  auto client = std::make_unique<WorkerControlClient>(std::move(control));
  co_await join(client.get(), worker, peer.incarnation);
  std::uint32_t lanes = peer.endpoints - 1;
  // Datasets were dealt out to the lanes that were there at the start: one that comes back with
  // more is sent no more closures at once.
  if (started_) lanes = std::min(lanes, static_cast<std::uint32_t>(worker->lanes.size()));
  while (worker->lanes.size() < lanes) {
    worker->lanes.push_back(std::make_unique<Lane>());
    worker->lanes.back()->worker = worker;
    worker->lanes.back()->index = static_cast<std::uint32_t>(worker->lanes.size() - 1);
  }
  for (std::uint32_t i = 0; i < lanes; ++i) {
    auto connection =
        co_await parts_.network.connect(parts_.reactor, address, hello(1 + i), kConnectDeadline);
    worker->lanes[i]->client = std::make_unique<LaneClient>(std::move(connection));
  }
  worker->process = peer.incarnation;
  worker->control = std::move(client);
}

// A connection is a life of its own: nothing that an earlier one brought to the worker is relied
// upon.
rpc::Task<void> Engine::configure_lanes(Worker* worker) {
  for (auto& lane : worker->lanes) {
    if (!lane->client) continue;
    lane->incarnation = next_incarnation_++;
    lane->layout_version = 0;
    lane->functions.clear();
    lane->pipelines.clear();
    lane->calls = 0;
    lane->answers = 0;
    lane->window = SendWindow(options_.pipeline_depth, options_.send_window);
    lane->tasks = std::make_unique<rpc::TaskGroup>();
    LaneConfiguration configuration{session_,
                                    lane->index,
                                    options_.pipeline_depth,
                                    lane->incarnation,
                                    options_.bfloat16_wire,
                                    options_.products == Arithmetic::kBfloat16};
    std::string what = str("configuring ", worker->name);
    co_await parts_.reactor.with_deadline(lane->client->configure(configuration),
                                          kConfigureDeadline, what);
  }
  for (auto& lane : worker->lanes) {
    // none before all: what is sent to a lane must not be forgotten
    lane->ready = lane->client != nullptr;
    lane->kept_out = holding_;  // it has not been asked to hold its pushes
    weigh(*lane);
  }
  worker->ready = true;
  worker->served = worker->process;
  worker->trouble.clear();
}

rpc::Task<void> Engine::worker_loop(Worker* worker) {
  Duration backoff = kBackoffFirst;
  for (;;) {
    if (worker->ready) {
      co_await watch_worker(worker);
      co_await give_up_worker(worker);
      backoff = kBackoffFirst;
    }
    try {
      co_await connect_worker(worker);
      co_await configure_lanes(worker);
    } catch (const Error& e) {
      worker->trouble = e.what();
    }
    if (worker->ready) {
      double away = seconds_since(worker->lost_at);
      log_info(worker->name, " is back after ", fixed(away, 2), " s");
      losses_.back(worker->absence, away);
      publish_losses();
    } else {
      co_await parts_.reactor.sleep(backoff);
      backoff = std::min(backoff * 2, kBackoffMax);
    }
    pump();
  }
}

// Returns when the worker counts as lost: its process is silent, or any of its connections ended.
rpc::Task<void> Engine::watch_worker(Worker* worker) {
  rpc::HeartbeatOptions beat{options_.heartbeat_interval, options_.heartbeats_missed_max};
  std::function<kj::Promise<void>()> ping = [worker] { return worker->control->ping(); };
  kj::Promise<rpc::Silence> silence =
      rpc::watch_heartbeat(parts_.reactor, worker->name, ping, beat).start();
  for (auto& lane : worker->lanes) {
    if (!lane->client) continue;  // it came back with fewer
    rpc::Silence ended{worker->name, {}, "a lane's connection ended"};
    silence = silence.exclusiveJoin(
        lane->client->connection().on_disconnect().then([ended] { return ended; }));
  }
  rpc::Silence what = co_await kj::mv(silence);
  worker->trouble = what.reason;
}

rpc::Task<void> Engine::give_up_worker(Worker* worker) {
  worker->ready = false;
  worker->lost_at = parts_.clock.now();
  std::vector<std::shared_ptr<Closure>> interrupted;
  for (auto& lane : worker->lanes) {
    lane->ready = false;
    weigh(*lane);
    lane->tasks.reset();
    lane->client.reset();
    lane->incarnation = 0;
    if (lane->preparing) interrupted.push_back(std::exchange(lane->preparing, nullptr));
    for (auto& closure : lane->inflight.take_all()) interrupted.push_back(std::move(closure));
    lane->outbox.clear();
  }
  worker->control.reset();
  for (auto& closure : interrupted) torn(*closure);
  log_warning(worker->name, " is lost (", worker->trouble, "); ", interrupted.size(),
              " closures go to other workers");
  worker->absence = losses_.lost(worker->name, worker->trouble, uptime());
  publish_losses();
  changed();
  co_await fence_lost_lanes();
  for (auto& closure : interrupted) queue_->put_back(std::move(closure));
}

// No shard may take from a lost lane what another is about to do again. A shard that is away is
// fenced before it opens.
rpc::Task<void> Engine::fence_lost_lanes() {
  ++fences_;
  for (auto& ps : ps_) {
    if (!ps->ready) continue;
    try {
      std::string what = str("fencing a lost worker on ", ps->name);
      co_await parts_.reactor.with_deadline(fence_lost_lanes_on(ps.get()), kConfigureDeadline,
                                            what);
    } catch (const Error& e) {
      // It is being lost, or it is stuck; cut off, it is fenced when it is attached again.
      log_warning(ps->name, " could not fence a lost worker (", e.what(),
                  "); its connection is ended");
      if (ps->control) ps->control->connection().close();
      ps->ready = false;
    }
  }
}

rpc::Task<void> Engine::fence_lost_lanes_on(Ps* ps) {
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    std::vector<std::uint64_t> alive;
    for (Lane* lane : lanes_)
      if (lane->incarnation != 0) alive.push_back(lane->incarnation);
    co_await ps->shards[s]->fence(session_, next_incarnation_ - 1, alive);
  }
}

rpc::Task<void> Engine::watch_for_no_workers() {
  std::optional<TimePoint> since;
  for (;;) {
    co_await parts_.reactor.sleep(options_.heartbeat_interval);
    std::string names;
    bool any = false;
    for (auto& worker : workers_) {
      any |= worker->ready;
      names += str(names.empty() ? "" : ", ", worker->name, " at ", worker->address, " (",
                   worker->trouble, ")");
    }
    if (any) {
      since.reset();
    } else if (!since) {
      since = parts_.clock.now();
      log_warning("no worker is left: ", names, ". Waiting ",
                  fixed(std::chrono::duration<double>(options_.worker_wait).count(), 0),
                  " s for one to come back");
    } else if (parts_.clock.now() - *since > options_.worker_wait) {
      queue_->fail_all(std::make_exception_ptr(UnavailableError(
          str("no worker could be reached for ",
              std::chrono::duration<double>(options_.worker_wait).count(), " s: ", names))));
      since = parts_.clock.now();
    }
  }
}

}  // namespace cairn
