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
  Impl(rpc::Reactor& control_reactor, rpc::Network& network_of_all, Offload& offload,
       storage::RowStore& store, PsServerOptions wanted)
      : reactor(control_reactor), network(network_of_all), options(std::move(wanted)) {
    if (options.shards == 0) throw InvalidArgumentError("a ps has at least one shard");
    if (options.memory_limit > 0) verify_memory_limit(options);
    if (options.incarnation == 0) options.incarnation = draw_incarnation();
    options.shard.lineage = options.incarnation.number;
    if (std::size_t& bytes = options.shard.save_memory.bytes; bytes > 0)
      bytes = std::max<std::size_t>(1, bytes / options.shards);
    std::vector<rpc::Endpoint> endpoints{rpc::control_endpoint(reactor, task_hooks())};
    for (std::uint32_t i = 0; i < options.shards; ++i)
      endpoints.push_back(make_shard(i, offload, store));
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

  rpc::Endpoint make_shard(std::uint32_t i, Offload& offload, storage::RowStore& store) {
    rpc::Reactor* own = &reactor;
    if (!reactor.simulated()) {
      threads.push_back(std::make_unique<rpc::ReactorThread>(str("ps-shard-", i)));
      own = &threads.back()->reactor();
    }
    // In a simulation all shards share the one loop. Otherwise each has a thread of its own: it
    // alone touches the shard's rows, and no lock is needed for them.
    ShardOptions shard = options.shard;
    std::shared_ptr<ColdDisk> disk;
    // A simulation has a bound without a limit, as its machine is small.
    const bool bounded = options.memory_limit > 0 || shard.tiering.memory_bytes > 0;
    if (bounded) {
      disk = std::make_shared<ColdDisk>(*own, offload, str(options.row_log_folder, "/shard-", i));
      if (options.memory_limit > 0) shard.tiering.memory_bytes = memory_for_rows(options);
      shard.tiering.make_store = disk->make_store();
    }
    auto host = std::make_shared<ShardHost>(LinkParts(*own, network, hello(), options.replication),
                                            shard, offload, i, options.shards + i, store,
                                            str("ps-", options.index, "-shard-", i));
    if (disk != nullptr) {
      host->run_bytes = run_bytes(shard.tiering.memory_bytes);
      disk->went_on = [weak = std::weak_ptr(host)] {
        if (const auto alive = weak.lock()) alive->store_went_on();
      };
    }
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
    hosts.push_back(host);
    return {own, [host](const rpc::PeerInfo&, rpc::Connection& connection) {
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
      for (const auto& host : hosts) host->log.stop();
    for (const auto& thread : threads) thread->stop();
  }

  rpc::Reactor& reactor;
  rpc::Network& network;
  PsServerOptions options;
  std::shared_ptr<PsStatus> status = std::make_shared<PsStatus>();
  std::shared_ptr<rpc::NewestTerm> terms = std::make_shared<rpc::NewestTerm>();
  // Shards post to the server through this pointer, which lives until stop().
  std::shared_ptr<Impl*> told = std::make_shared<Impl*>(this);
  std::function<void(const std::string&)> shutdown;
  std::vector<std::shared_ptr<ShardHost>> hosts;
  std::vector<std::unique_ptr<rpc::ReactorThread>> threads;  // after hosts: they end first
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
