// The engine's beginning and end: all tasks are connected, join the session, and are let go.

#include "coordinator/cluster/task_roles.h"
#include "coordinator/engine/engine.h"

namespace cairn {
namespace {

constexpr Duration kDialPause = std::chrono::milliseconds(20);

// One that is away, or slow, is dialled again.
rpc::Task<void> dial_once(ClusterMember* member, rpc::Task<void> connecting) {
  try {
    co_await kj::mv(connecting);
    member->trouble.clear();
  } catch (const UnavailableError& e) {
    member->trouble = e.what();
  } catch (const DeadlineExceededError& e) {
    member->trouble = e.what();
  }
}

// A task that is lost at once is lost like any other: its loop brings it back.
rpc::Task<void> join_or_lose(ClusterMember* member, rpc::Task<void> joining, const Clock* clock) {
  try {
    co_await kj::mv(joining);
    co_return;
  } catch (const UnavailableError& e) {
    member->trouble = e.what();
  } catch (const DeadlineExceededError& e) {
    member->trouble = e.what();
  }
  member->lost_at = clock->now();
}

// Members are counted without gaps; the names are the tasks' own, which may have some.
template <typename Member>
void list_tasks(const ClusterSpec& cluster, rpc::Role role,
                std::vector<std::unique_ptr<Member>>& members) {
  for (const auto& [task, address] : cluster.tasks(std::string(rpc::role_name(role)))) {
    auto member = std::make_unique<Member>();
    member->index = static_cast<std::uint32_t>(members.size());
    member->address = address;
    member->name = rpc::task_name(role, static_cast<std::uint32_t>(task));
    members.push_back(std::move(member));
  }
}

}  // namespace

rpc::Task<void> Engine::start() {
  list_members();
  verify_found();
  co_await tables_.config().take_term();
  books_.losses = LossLedger(members_.ps.size());
  // Both run while the others are still dialled: the status so that tools can ask for it meanwhile,
  // and the pings so that no task takes us for dead and lets another coordinator join.
  session_.tasks.spawn("status", status_.run());  // `cairn status` says who is missing
  session_.tasks.spawn("showing life to those that are there", show_life());
  co_await connect_everybody();
  // Every task has joined the new term by now, so that nothing of an earlier one counts from here.
  co_await recorder_.begin(members_.ps.size());
  number_members();
  co_await watch_ps();
  co_await resume_books();
  const Clock* clock = &session_.parts.clock;
  for (auto& ps : members_.ps)
    co_await join_or_lose(ps.get(), ps_.group.attach_in_time(ps.get()), clock);
  for (auto& worker : members_.workers)
    co_await join_or_lose(worker.get(), workers_.configure(worker.get()), clock);
  // From here on closures are sent. The loops below bring back the tasks that were lost on the way.
  session_.started = true;
  for (auto& ps : members_.ps)
    session_.tasks.spawn(str("shards of ", ps->name), ps_.group.serve(ps.get()));
  ps_.replicas.run();
  // The loops that bring back lost workers begin only now: before that they and the start would
  // connect the same one twice.
  for (auto& worker : members_.workers)
    session_.tasks.spawn(worker->name, workers_.keep(worker.get()));
  session_.tasks.spawn("watch for workers", workers_.watch_for_none());
  session_.tasks.spawn("announce closures", announcer_.run());
  status_.refresh();
  pump();
  co_await finish_resumed();
}

void Engine::list_members() {
  const auto& cluster = session_.options.cluster;
  verify_parameter_server_cluster(cluster);
  verify_distinct_addresses(cluster);
  list_tasks(cluster, rpc::Role::kPs, members_.ps);
  list_tasks(cluster, rpc::Role::kWorker, members_.workers);
  if (const std::uint32_t replicas = session_.options.recovery.replicas;
      replicas < 1 || replicas > members_.ps.size() || replicas > 1 + kBackupsMax)
    throw InvalidArgumentError(str("replicas is ", replicas, ", and the cluster has ",
                                   members_.ps.size(),
                                   " ps: each copy of a row lies on another ps, ",
                                   "and there are at most ", 1 + kBackupsMax, " copies"));
  policy_->verify_members();
}

// All tasks are dialled in turn until all are there, so that one that is away hides no other.
rpc::Task<void> Engine::connect_everybody() {
  const TimePoint deadline = session_.parts.clock.now() + session_.options.start.timeout;
  for (;;) {
    for (auto& ps : members_.ps)
      if (!ps->control) co_await dial_once(ps.get(), ps_.group.connect(ps.get()));
    for (auto& worker : members_.workers)
      if (!worker->control) co_await dial_once(worker.get(), workers_.connect(worker.get()));
    const std::vector<MissingTask> missing = members_.not_connected();
    if (missing.empty()) co_return;
    if (session_.parts.clock.now() >= deadline) {
      std::string all;
      for (const MissingTask& task : missing) all += (all.empty() ? "" : "; ") + task.text();
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(session_.options.start.timeout).count();
      throw UnavailableError(str("could not be reached in ", seconds, " s: ", all,
                                 ". Start what is missing, or correct its address in the cluster"));
    }
    co_await session_.parts.reactor.sleep(kDialPause);
  }
}

// Shards and lanes are numbered over the whole cluster once it is known how many each task has.
void Engine::number_members() {
  std::vector<ShardLayout> all = members_.place_shards(session_.options.recovery.replicas);
  if (recorder_.found() != nullptr)
    tables_.resume(found_layout(all));
  else
    tables_.begin(std::move(all));
  for (auto& worker : members_.workers)
    for (auto& lane : worker->lanes) {
      lane->number = members_.lanes.size();
      members_.lanes.push_back(lane.get());
    }
}

// A ps that is lost meanwhile is connected again by its loop.
rpc::Task<void> Engine::watch_ps() {
  for (auto& ps : members_.ps) {
    co_await dial_once(ps.get(), ps_.group.connect_places(ps.get()));
    session_.tasks.spawn(ps->name, ps_.group.keep(ps.get()));
  }
}

std::vector<std::int64_t> Engine::workers_of_lanes() const {
  std::vector<std::int64_t> workers;
  for (const LaneState* lane : members_.lanes) workers.push_back(lane->worker->index);
  return workers;
}

// While other tasks are still dialled or given their tables, those that have been joined are
// pinged, so that they know that we live.
rpc::Task<void> Engine::show_life() {
  while (!session_.started) {
    for (ClusterMember* member : members_.all())
      if (member->control)
        session_.tasks.spawn("a ping", member->control->ping().catch_([](kj::Exception&&) {}));
    co_await session_.parts.reactor.sleep(session_.options.heartbeats.interval);
  }
}

// Coroutines first: they refer to the parts and to the connections.
void Engine::stop() {
  session_.tasks.cancel_all();
  for (LaneState* lane : members_.lanes) {
    lane->tasks.reset();
    lane->client.reset();
  }
  for (auto& worker : members_.workers) worker->control.reset();
  for (auto& ps : members_.ps) {
    ps->shards.clear();
    for (PlacedShard& shard : ps->placed)
      for (ShardPlace& place : shard.places) place.client.reset();
    ps->control.reset();
  }
}

}  // namespace cairn
