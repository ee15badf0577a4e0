#include "worker/worker_server.h"

#include <random>
#include <set>

#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/kernels/device_figures_json.h"
#include "rpc/loop/memory_use.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/server/control_session.h"
#include "rpc/server/server.h"
#include "worker/lane/lane_service.h"
#include "worker/rows/register_memory.h"

namespace cairn::worker {
namespace {

ProcessIncarnation random_incarnation() {
  std::random_device device;
  std::uint64_t drawn = 0;
  // 0 means "not drawn yet" in the options, and "away" in a layout.
  while (drawn == 0) drawn = (std::uint64_t{device()} << 32) | device();
  return drawn;
}

Json closure_json(const ActivitySlot::Seen& seen, Duration now) {
  Json out{{"sequence", seen.sequence},
           {"activity", activity_name(seen.activity)},
           {"doing", activity_text(seen.activity)},
           {"seconds", std::chrono::duration<double>(now - seen.since).count()}};
  if (has_shard(seen.activity)) {
    out["ps"] = seen.at.ps;
    out["shard"] = seen.at.shard;
  }
  return out;
}

}  // namespace

// A lane and the thread it works on. The lane is kept by its reactor, which destroys it on its
// thread.
struct WorkerServer::LaneThread {
  LaneThread(rpc::Reactor* shared, rpc::Network& network, const LaneOptions& options,
             std::uint32_t index) {
    if (shared == nullptr) thread = std::make_unique<rpc::ReactorThread>(str("lane ", index));
    reactor = shared != nullptr ? shared : &thread->reactor();
    // A lane belongs to its reactor's thread, so it is made there, and the constructor waits for
    // it.
    auto make = [&] {
      // Messages are received there, and rows of several shards meet there.
      if (thread) reactor->buffers().register_with(options.link.register_memory);
      auto made = std::make_shared<Lane>(*reactor, network, options);
      lane = made;
      stats = &made->stats();
      reactor->keep(std::move(made));
    };
    if (thread)
      thread->run(make);
    else
      make();
  }
  // A thread that stops takes its reactor along, which lets go of the lane. On a shared reactor it
  // has to be released by hand, or it would live as long as that.
  ~LaneThread() {
    if (thread)
      thread->stop();
    else if (auto last = lane.lock())
      reactor->release(last.get());
  }
  std::unique_ptr<rpc::ReactorThread> thread;
  rpc::Reactor* reactor = nullptr;
  std::weak_ptr<Lane> lane;
  const LaneStats* stats = nullptr;  // valid while the lane is
};

WorkerServer::WorkerServer(rpc::Reactor& reactor, rpc::Network& network, WorkerOptions options)
    : options_(std::move(options)),
      reactor_(reactor),
      alive_(std::make_shared<WorkerServer*>(this)) {
  if (options_.lanes < 1)
    throw InvalidArgumentError("a worker needs at least one lane; --lanes says how many");
  if (options_.incarnation == 0) options_.incarnation = random_incarnation();
  // Where lanes share the caller's loop, as in a simulation, nothing may run on threads of its own.
  const bool shared = options_.threads == LaneThreads::kShared;
  LaneOptions lane;
  lane.cluster = options_.cluster;
  lane.token = options_.token;
  lane.task = options_.index;
  lane.incarnation = options_.incarnation;
  lane.link = options_.link;
  lane.deterministic = options_.deterministic;
  lane.data.open_elements = options_.open_elements;
  if (options_.offload == nullptr)
    lane.offload = shared ? make_inline_offload() : make_thread_offload(options_.lanes);
  lane.data.offload = options_.offload != nullptr ? options_.offload : lane.offload.get();
  // Until the program says what ending means, a request to end is only logged.
  on_shutdown_ = [log = options_.log](const std::string& reason) {
    log(LogLevel::kWarning, str("asked to end (", reason, "), but nobody here can"));
  };

  std::vector<rpc::Endpoint> endpoints{control_endpoint()};
  for (std::uint32_t i = 0; i < options_.lanes; ++i) {
    lane.data.lane = i;
    lane.device = &device_of(i);
    lane.link.register_memory = register_with(*lane.device);
    lane_threads_.push_back(
        std::make_unique<LaneThread>(shared ? &reactor_ : nullptr, network, lane, i));
    endpoints.push_back(lane_endpoint(*lane_threads_.back()));
  }
  rpc::AcceptorOptions door;
  door.cluster = options_.cluster;
  door.role = rpc::Role::kWorker;
  door.task = options_.index;
  door.incarnation = options_.incarnation;
  door.token = options_.token;
  door.insecure = options_.insecure;
  door.log = options_.log;
  acceptor_ = std::make_unique<rpc::Acceptor>(network, options_.address, std::move(door),
                                              std::move(endpoints));
}

// Workers of one machine, with a lane each, would otherwise all compute on its first GPU.
Device& WorkerServer::device_of(std::uint32_t lane) const {
  if (options_.devices.empty()) return cpu_device();
  const std::size_t turn = std::size_t{options_.index} * options_.lanes + lane;
  return *options_.devices[turn % options_.devices.size()];
}

rpc::Endpoint WorkerServer::control_endpoint() {
  // The hooks are held by connections, which may end later than the server.
  auto self = [weak = std::weak_ptr(alive_)]() -> WorkerServer& {
    auto alive = weak.lock();
    if (!alive) throw UnavailableError("this worker has stopped");
    return **alive;
  };
  rpc::TaskHooks hooks;
  hooks.terms = terms_;
  hooks.state = [self] {
    WorkerServer& server = self();
    return rpc::TaskState{server.options_.incarnation, server.options_.lanes,
                          server.lane_threads_.front()->stats->session};
  };
  hooks.status_json = [self] { return self().status_json(); };
  hooks.shutdown = [self](const std::string& reason) { self().on_shutdown_(reason); };
  return rpc::control_endpoint(reactor_, std::move(hooks));
}

rpc::Endpoint WorkerServer::lane_endpoint(const LaneThread& thread) {
  auto serve = [weak = thread.lane, terms = terms_](
                   const rpc::PeerInfo& peer,
                   rpc::Connection& connection) -> capnp::Capability::Client {
    auto lane = weak.lock();
    if (!lane) throw UnavailableError("this lane has ended");
    // Workers only ask what members of a group ask of each other.
    if (peer.role == rpc::Role::kWorker) return lane->group().serve(peer, connection);
    return make_lane_service(std::move(lane), terms, connection);
  };
  return {thread.reactor, serve};
}

WorkerServer::~WorkerServer() { stop(); }

const rpc::Address& WorkerServer::address() const { return acceptor_->address(); }

void WorkerServer::on_shutdown(std::function<void(const std::string&)> handler) {
  on_shutdown_ = std::move(handler);
}

// The devices of its lanes, but for the CPU, which has no figures.
Json WorkerServer::devices_json() const {
  Json all = Json::array();
  std::set<const Device*> seen;
  for (std::uint32_t lane = 0; lane < options_.lanes; ++lane) {
    const Device& device = device_of(lane);
    if (!seen.insert(&device).second) continue;
    if (const auto figures = device.figures()) all.push_back(figures_json(device.name(), *figures));
  }
  return all;
}

std::string WorkerServer::status_json() const {
  Json out{{"task", rpc::task_name(rpc::Role::kWorker, options_.index)},
           {"address", address().str()},
           {"incarnation", options_.incarnation.number},
           {"connections", acceptor_->connections()},
           {"memory_bytes", private_memory_bytes()},
           {"buffer_bytes", rpc::buffer_bytes()},
           {"shared_bytes", rpc::shared_bytes()},
           {"devices", devices_json()},
           {"lanes_why", options_.lanes_why},
           {"lanes", Json::array()}};
  for (std::uint32_t lane = 0; lane < lane_threads_.size(); ++lane) {
    const LaneStats& stats = *lane_threads_[lane]->stats;
    Json closures = Json::array();
    for (const ActivitySlot::Seen& seen : stats.activities.seen())
      closures.push_back(closure_json(seen, reactor_.now()));
    out["lanes"].push_back({{"device", device_of(lane).name()},
                            {"session", stats.session.load()},
                            {"functions", stats.functions.load()},
                            {"closures_done", stats.closures_done.load()},
                            {"closures_failed", stats.closures_failed.load()},
                            {"closures_here", stats.closures_here.load()},
                            {"iterators_opened", stats.iterators_opened.load()},
                            {"closures", std::move(closures)}});
  }
  return json_text(out);
}

std::vector<rpc::NamedLoop> WorkerServer::loops() const {
  std::vector<rpc::NamedLoop> loops;
  for (std::size_t i = 0; i < lane_threads_.size(); ++i)
    if (lane_threads_[i]->thread)
      loops.push_back({str("lane ", i), lane_threads_[i]->reactor->mailbox()});
  return loops;
}

// The order: first services no longer reach the server, then no connection comes in, and only then
// the lanes end.
void WorkerServer::stop() {
  alive_.reset();
  if (acceptor_) acceptor_->stop();
  lane_threads_.clear();
}

}  // namespace cairn::worker
