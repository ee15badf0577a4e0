// The engine's beginning and end: everybody is connected, joins the session, and is let go of.
#include "coordinator/engine.h"
#include "coordinator/task_roles.h"

namespace cairn {
namespace {
constexpr Duration kDialPause = std::chrono::milliseconds(20);
}  // namespace

rpc::Task<void> Engine::start() {
  const auto& cluster = options_.cluster;
  verify_parameter_server_cluster(cluster);
  // Members are counted without gaps; the names are the tasks' own, which may have some.
  for (const auto& [task, address] : cluster.tasks("ps")) {
    auto index = static_cast<std::uint32_t>(ps_.size());
    ps_.push_back(std::make_unique<Ps>());
    *ps_.back() = Ps{.index = index,
                     .address = address,
                     .name = rpc::task_name(rpc::Role::kPs, static_cast<std::uint32_t>(task))};
  }
  for (const auto& [task, address] : cluster.tasks("worker")) {
    auto index = static_cast<std::uint32_t>(workers_.size());
    workers_.push_back(std::make_unique<Worker>());
    *workers_.back() =
        Worker{.index = index,
               .address = address,
               .name = rpc::task_name(rpc::Role::kWorker, static_cast<std::uint32_t>(task))};
  }
  losses_ = LossLedger(ps_.size());
  tasks_.spawn("status", publish_status());  // `cairn status` says who is missing
  tasks_.spawn("showing life to those that are there", show_life());
  co_await connect_everybody();

  std::vector<ShardServer> servers;
  std::uint32_t first = 0;
  for (auto& ps : ps_) {
    auto shards = static_cast<std::uint32_t>(ps->shards.size());
    servers.push_back({ps->index, ps->address, ps->incarnation, shards, first});
    for (const auto& shard : ps->shards) shard->set_shard(first++);
  }
  registry_ = std::make_unique<VariableRegistry>(options_.variables, std::move(servers));
  for (auto& worker : workers_)
    for (auto& lane : worker->lanes) {
      lane->number = lanes_.size();
      lanes_.push_back(lane.get());
    }
  lane_count_ = lanes_.size();
  synced_ = registry_->layout();
  synced_version_ = synced_->version;
  for (auto& ps : ps_) co_await try_to(ps.get(), &Engine::attach_in_time);
  for (auto& worker : workers_) co_await try_to(worker.get(), &Engine::configure_lanes);
  started_ = true;
  for (auto& ps : ps_) tasks_.spawn(ps->name, ps_loop(ps.get()));
  for (auto& worker : workers_) tasks_.spawn(worker->name, worker_loop(worker.get()));
  tasks_.spawn("watch for workers", watch_for_no_workers());
  tasks_.spawn("announce closures", announce_loop());
  refresh_status();
  pump();
}

// A task that is lost at once is lost like any other: its loop brings it back.
template <typename Member>
rpc::Task<void> Engine::try_to(Member* member, rpc::Task<void> (Engine::*join)(Member*)) {
  try {
    co_await (this->*join)(member);
    co_return;
  } catch (const UnavailableError& e) {
    member->trouble = e.what();
  } catch (const DeadlineExceededError& e) {
    member->trouble = e.what();
  }
  member->lost_at = parts_.clock.now();
}

// Everybody is dialled in turn until all are there, so that one that is away hides no other.
rpc::Task<void> Engine::connect_everybody() {
  const TimePoint deadline = parts_.clock.now() + options_.start_timeout;
  for (;;) {
    for (auto& ps : ps_)
      if (!ps->control) co_await dial_once(ps.get(), &Engine::connect_ps);
    for (auto& worker : workers_)
      if (!worker->control) co_await dial_once(worker.get(), &Engine::connect_worker);
    const std::vector<std::string> missing = not_connected();
    if (missing.empty()) co_return;
    if (parts_.clock.now() >= deadline) {
      std::string all;
      for (const std::string& task : missing) all += (all.empty() ? "" : "; ") + task;
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(options_.start_timeout).count();
      throw UnavailableError(str("could not be reached in ", seconds, " s: ", all,
                                 ". Start what is missing, or correct its address in the cluster"));
    }
    co_await parts_.reactor.sleep(kDialPause);
  }
}

template <typename Member>
rpc::Task<void> Engine::dial_once(Member* member, rpc::Task<void> (Engine::*connect)(Member*)) {
  try {
    co_await (this->*connect)(member);
    member->trouble.clear();
  } catch (const UnavailableError& e) {
    member->trouble = e.what();
  } catch (const DeadlineExceededError& e) {
    member->trouble = e.what();
  }
}

std::vector<std::string> Engine::not_connected() const {
  std::vector<std::string> missing;
  const auto add = [&](const auto& member) {
    if (!member.control)
      missing.push_back(str(member.name, " at ", member.address, ": ", member.trouble));
  };
  for (const auto& ps : ps_) add(*ps);
  for (const auto& worker : workers_) add(*worker);
  return missing;
}

void Engine::stop() {
  tasks_.cancel_all();
  for (Lane* lane : lanes_) {
    lane->tasks.reset();
    lane->client.reset();
  }
  for (auto& worker : workers_) worker->control.reset();
  for (auto& ps : ps_) {
    ps->shards.clear();
    ps->control.reset();
  }
}

rpc::Hello Engine::hello(std::uint32_t endpoint) const {
  rpc::Hello hello;
  hello.cluster = options_.cluster_id;
  hello.session = session_;
  hello.role = rpc::Role::kCoordinator;
  hello.endpoint = endpoint;
  hello.token = options_.token;
  return hello;
}

}  // namespace cairn
