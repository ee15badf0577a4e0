#include "ps/server/ps_server.h"

#include <algorithm>
#include <random>

#include "ps/server/cold_disk.h"
#include "ps/server/memory_shares.h"
#include "ps/server/ps_status.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/reactor_thread.h"
#include "rpc/server/control_session.h"

namespace cairn::ps {
namespace {

// Random, because a process that is started again at the same address must not be taken for the one
// that was lost. Odd, thus never 0, which means "none".
ProcessIncarnation draw_incarnation() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace

struct PsServer::Impl {
  Impl(rpc::Reactor& control_reactor, rpc::Network& network_of_all, Offload& offload_of_all,
       storage::RowStore& store_of_all, PsServerOptions wanted)
      : reactor(control_reactor),
        network(network_of_all),
        offload(offload_of_all),
        store(store_of_all),
        options(std::move(wanted)) {
    if (options.shards == 0) throw InvalidArgumentError("a ps has at least one shard");
    if (options.memory_limit > 0) verify_memory_limit(options);
    if (options.incarnation == 0) options.incarnation = draw_incarnation();
    options.shard.lineage = options.incarnation.number;
    if (std::size_t& bytes = options.shard.save_memory.bytes; bytes > 0)
      bytes = std::max<std::size_t>(1, bytes / options.shards);
    std::vector<rpc::Endpoint> endpoints{rpc::control_endpoint(reactor, task_hooks())};
    for (std::uint32_t i = 0; i < options.shards; ++i) endpoints.push_back(make_shard(i));
    status->index = options.index;
    status->shards_why = options.shards_why;
    status->incarnation = options.incarnation;
    for (const auto& host : hosts) status->shards.push_back(&host->shard.counters());
    listen(std::move(endpoints));
  }

  // As whom a primary greets its backups.
  rpc::Hello hello() const {
    rpc::Hello hello;
    hello.cluster = options.cluster;
    hello.role = rpc::Role::kPs;
    hello.task = options.index;
    hello.incarnation = options.incarnation;
    hello.token = options.token;
    return hello;
  }

  rpc::TaskHooks task_hooks() {
    rpc::TaskHooks hooks;
    hooks.terms = terms;
    hooks.heard = heard;
    hooks.state = [status = status] {
      return rpc::TaskState{status->incarnation, static_cast<std::uint32_t>(status->shards.size()),
                            status->session};
    };
    hooks.status_json = [status = status] { return ps::status_json(*status); };
    hooks.shutdown = [this](const std::string& reason) {
      if (shutdown) shutdown(reason);
    };
    return hooks;
  }

  rpc::Endpoint make_shard(std::uint32_t i) {
    // In a simulation all shards share the one loop. Otherwise each has a thread of its own: it
    // alone touches the shard's rows, and no lock is needed for them.
    if (!reactor.simulated())
      threads.push_back(std::make_unique<rpc::ReactorThread>(str("ps-shard-", i)));
    ShardOptions shard = options.shard;
    std::shared_ptr<ColdDisk> disk;
    if (bounded()) {
      disk = std::make_shared<ColdDisk>(loop_of(i), offload,
                                        str(options.row_log_folder, "/shard-", i));
      if (options.memory_limit > 0) shard.tiering.memory_bytes = memory_for_rows(options);
      shard.tiering.make_store = disk->make_store();
    }
    auto host = make_host(loop_of(i), shard, {i, options.shards + i, "shard", i});
    if (disk != nullptr) {
      host->run_bytes = run_bytes(shard.tiering.memory_bytes);
      disk->went_on = [weak = std::weak_ptr(host)] {
        if (const auto alive = weak.lock()) alive->store_went_on();
      };
    }
    hosts.push_back(host);
    return endpoint_of(std::move(host));
  }

  // A place for the backup of another ps's shard. Only a coordinator makes one, so that nobody else
  // can have this process keep more of them than the cluster uses.
  std::optional<rpc::Endpoint> make_place(const rpc::Hello& hello) {
    const std::uint32_t first = 1 + options.shards, place = hello.endpoint - first;
    if (place >= options.shards * kBackupsMax) return std::nullopt;
    // A worker goes by a layout of before this process, or the coordinator has not come here yet.
    if (hello.role != rpc::Role::kCoordinator)
      throw UnavailableError(str("endpoint ", hello.endpoint,
                                 " holds no copy of another ps's shard yet: repeat the call"));
    if (bounded())
      throw FailedPreconditionError(
          str("this ps has a memory limit, and can hold no backup of another ps's rows: replicas "
              "need all rows in memory"));
    // Lanes of its own, and again its files and its copies on different threads of the offload.
    const std::size_t lane = 2 * options.shards + place;
    auto host = make_host(loop_of(place % options.shards), options.shard,
                          {lane, lane + options.shards * kBackupsMax, "place", place});
    places.push_back(host);
    status->places.emplace(hello.endpoint, &host->shard.counters());
    return endpoint_of(std::move(host));
  }

  // A simulation has a bound without a limit, as its machine is small.
  bool bounded() const {
    return options.memory_limit > 0 || options.shard.tiering.memory_bytes > 0;
  }
  rpc::Reactor& loop_of(std::uint32_t shard) {
    return reactor.simulated() ? reactor : threads[shard]->reactor();
  }

  struct HostNumbers {
    std::size_t lane, pages_lane;
    const char* kind;
    std::uint32_t number;
  };
  // Made on the control's thread. From the first post to its own thread on it belongs to that one.
  std::shared_ptr<ShardHost> make_host(rpc::Reactor& own, const ShardOptions& shard,
                                       const HostNumbers& numbers) {
    auto host = std::make_shared<ShardHost>(
        LinkParts(own, network, hello(), options.replication, heard), shard, offload, numbers.lane,
        numbers.pages_lane, store,
        str("ps-", options.index, "-", numbers.kind, "-", numbers.number));
    host->terms = terms;
    host->save_batch_bytes = options.save_batch_bytes;
    host->restore_batch_bytes = options.restore_batch_bytes;
    // A shard learns of a new session on its own thread and posts it to the control's loop. The
    // pointer is weak: a post that arrives after stop() does nothing.
    host->on_session = [mailbox = reactor.mailbox(),
                        weak = std::weak_ptr(told)](std::uint64_t session) {
      mailbox->post([weak, session] {
        if (const auto server = weak.lock()) (*server)->set_session(session);
      });
    };
    return host;
  }

  static rpc::Endpoint endpoint_of(std::shared_ptr<ShardHost> host) {
    rpc::Reactor* const own = &host->reactor;
    return {own, [host = std::move(host)](const rpc::PeerInfo&, rpc::Connection& connection) {
              return serve_shard(host, connection);
            }};
  }

  void listen(std::vector<rpc::Endpoint> endpoints) {
    rpc::AcceptorOptions accept;
    accept.cluster = options.cluster;
    accept.role = rpc::Role::kPs;
    accept.task = options.index;
    accept.incarnation = options.incarnation;
    accept.token = options.token;
    accept.insecure = options.insecure;
    accept.connection = options.connection;
    accept.further = [this](const rpc::Hello& hello) { return make_place(hello); };
    acceptor = std::make_unique<rpc::Acceptor>(network, rpc::Address::parse(options.listen),
                                               std::move(accept), std::move(endpoints));
    status->address = acceptor->address().str();
    status->connections = [this] { return acceptor->connections(); };
  }

  void set_session(std::uint64_t session) {
    status->session = session;
    acceptor->set_session(session);
  }

  void stop() {
    // First, so that no letter of a shard finds a server that is being taken apart. Then no
    // connection comes any more, and last the threads end.
    told.reset();
    status->connections = nullptr;
    acceptor->stop();
    if (reactor.simulated())
      for (const auto* all : {&hosts, &places})
        for (const auto& host : *all) host->log.stop();
    for (const auto& thread : threads) thread->stop();
  }

  rpc::Reactor& reactor;
  rpc::Network& network;
  Offload& offload;
  storage::RowStore& store;
  PsServerOptions options;
  std::shared_ptr<PsStatus> status = std::make_shared<PsStatus>();
  std::shared_ptr<rpc::NewestTerm> terms = std::make_shared<rpc::NewestTerm>();
  std::shared_ptr<rpc::LastHeard> heard = std::make_shared<rpc::LastHeard>();
  // Shards post to the server through this pointer, which lives until stop().
  std::shared_ptr<Impl*> told = std::make_shared<Impl*>(this);
  std::function<void(const std::string&)> shutdown;
  // The shards, by number, and the places that were made, in that order.
  std::vector<std::shared_ptr<ShardHost>> hosts, places;
  std::vector<std::unique_ptr<rpc::ReactorThread>> threads;  // after both: they end first
  std::unique_ptr<rpc::Acceptor> acceptor;
};

PsServer::PsServer(rpc::Reactor& control, rpc::Network& network, Offload& offload,
                   storage::RowStore& store, PsServerOptions options)
    : impl_(std::make_unique<Impl>(control, network, offload, store, std::move(options))) {}
PsServer::~PsServer() { stop(); }

const rpc::Address& PsServer::address() const { return impl_->acceptor->address(); }
ProcessIncarnation PsServer::incarnation() const { return impl_->options.incarnation; }
std::size_t PsServer::shards() const { return impl_->hosts.size(); }
const ShardCounters& PsServer::counters(std::size_t shard) const {
  return impl_->hosts.at(shard)->shard.counters();
}
Shard* PsServer::shard_at(std::uint32_t endpoint) const {
  const std::size_t own = impl_->hosts.size();
  if (endpoint >= 1 && endpoint <= own) return &impl_->hosts[endpoint - 1]->shard;
  for (const auto& host : impl_->places)
    if (host->lane == own + endpoint - 1) return &host->shard;  // see make_place()
  return nullptr;
}
std::string PsServer::status_json() const { return ps::status_json(*impl_->status); }
std::vector<rpc::NamedLoop> PsServer::loops() const {
  std::vector<rpc::NamedLoop> loops;
  for (std::size_t i = 0; i < impl_->threads.size(); ++i)
    loops.push_back({str("shard ", i), impl_->threads[i]->reactor().mailbox()});
  return loops;
}
void PsServer::on_shutdown(std::function<void(const std::string&)> handler) {
  impl_->shutdown = std::move(handler);
}
void PsServer::stop() { impl_->stop(); }

}  // namespace cairn::ps
