#include "coordinator/engine/engine_host.h"
#include "core/base/log.h"
#include "core/disk/memory_disk.h"
#include "core/graph/ops.h"
#include "core/graph/wire/wire.h"
#include "ps/server/ps_server.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "storage/row_store.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tests/fuzz/player/sequence_parts.h"
#include "tests/fuzz/player/sequence_player.h"
#include "worker/worker_server.h"

namespace cairn::fuzz {
namespace {

constexpr std::uint64_t kIncarnation = 100, kHonestSession = 99;
// virtual: a closure of the sequence may wait for its deadlines
constexpr Duration kPatience = std::chrono::minutes(2);

ps::PsServerOptions ps_options() {
  ps::PsServerOptions options;
  options.listen = "sim://ps";
  options.cluster = "test";
  options.token = "secret";
  options.shards = 2;
  options.incarnation = kIncarnation;
  options.shard.tables_bytes_max = 16 << 20;
  options.shard.staging.bytes_max = 1 << 20;
  options.connection.message_bytes_max = 8 << 20;
  options.connection.unread_bytes_max = 32 << 20;
  return options;
}

worker::WorkerOptions worker_options() {
  worker::WorkerOptions options;
  options.address = rpc::Address::parse("sim://worker");
  options.cluster = "test";
  options.token = "secret";
  options.lanes = 2;
  options.threads = worker::LaneThreads::kShared;
  options.incarnation = kIncarnation + 1;
  options.link.shared_bytes = 1 << 20;
  options.link.shared_min = 64;
  options.link.piece_bytes_max = 1 << 10;
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

EngineOptions engine_options() {
  EngineOptions options;
  options.cluster.add_task("chief", "sim://chief");
  options.cluster.add_task("ps", "sim://chiefs-ps");
  options.cluster.add_task("worker", "sim://chiefs-worker");
  options.cluster_id = "test";
  options.token = "secret";
  options.session = kHonestSession - 1;
  return options;
}

// A program that saves and stops when it is asked to, with a ps and a worker whose addresses the
// sequence does not have.
struct Chief {
  Chief(rpc::SimReactor& reactor, rpc::SimNetwork& network, Offload& offload, Disk& disk,
        storage::RowStore& store)
      : ps(reactor, network.host("chiefs-ps"), offload, store, own_ps()),
        worker(reactor, network.host("chiefs-worker"), own_worker()),
        strategy(start_simulated_engine(engine_options(),
                                        {reactor, network.host("chief"), offload, disk})),
        coordinator(strategy),
        v(strategy.create_variable({.name = "v", .shape = {}})),
        add(strategy.function([this] { v.assign_add(Array(1.0f)); })) {
    coordinator.save_automatically({.folder = "/chiefs-checkpoints", .keep_last = 2});
    coordinator.stop_requested();
  }
  static ps::PsServerOptions own_ps() {
    ps::PsServerOptions options = ps_options();
    options.listen = "sim://chiefs-ps";
    options.shards = 1;
    options.incarnation.number += 2;
    return options;
  }
  static worker::WorkerOptions own_worker() {
    worker::WorkerOptions options = worker_options();
    options.address = rpc::Address::parse("sim://chiefs-worker");
    options.lanes = 1;
    options.incarnation.number += 2;
    return options;
  }
  ps::PsServer ps;
  worker::WorkerServer worker;
  ParameterServerStrategy strategy;
  ClusterCoordinator coordinator;
  Variable v;
  Function add;
};

struct Cluster {
  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  ps::PsServer ps{reactor, network.host("ps"), *offload, *store, ps_options()};
  worker::WorkerServer worker{reactor, network.host("worker"), worker_options()};
  Chief chief{reactor, network, *offload, disk, *store};

  template <typename Sent>
  void wait(Sent sent) {
    auto ended = sent.ignoreResult();
    reactor.wait(reactor.with_deadline(kj::mv(ended), kPatience, "an honest call"));
  }
  std::unique_ptr<rpc::Connection> connect(const rpc::Address& address,
                                           std::uint32_t endpoint = 1) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.token = "secret";
    hello.session = kHonestSession;
    hello.role = rpc::Role::kCoordinator;
    hello.endpoint = endpoint;
    return reactor.wait(network.host("honest").connect(reactor, address, hello, kPatience));
  }
  // A coordinator that comes now gets its session, its tables and its answers.
  void serve_an_honest_one() {
    const auto to_shard = connect(ps.address()), to_lane = connect(worker.address());
    auto shard = to_shard->bootstrap<wire::Shard>();
    auto configure = shard.configureRequest();
    configure.setSession(kHonestSession);
    wait(configure.send());
    wait(shard.openRequest().send());
    auto lane = to_lane->bootstrap<wire::Lane>();
    auto session = lane.configureRequest();
    session.setSession(kHonestSession);
    session.setPipelineDepth(2);
    wait(session.send());
    auto add = lane.registerRequest();
    const std::vector<std::byte>& graph = played_function(0);
    add.setGraph({reinterpret_cast<const kj::byte*>(graph.data()), graph.size()});
    wait(add.send());
    auto run = lane.runRequest();
    wire::write(run.initClosures(1)[0].initArguments(1)[0],
                Tensor::of<float>({2}, std::vector<float>{1, 2}));
    kj::Promise<capnp::Response<wire::Lane::RunResults>> sent = run.send();
    const auto answer =
        reactor.wait(reactor.with_deadline(kj::mv(sent), kPatience, "an honest closure"));
    CAIRN_CHECK(answer.getResults().size() == 1 && !answer.getResults()[0].hasError(),
                "an honest closure is computed");
    const auto to_chief = connect(rpc::Address::parse("sim://chief"), 0);
    wait(to_chief->bootstrap<wire::CoordinatorControl>().statusRequest().send());
    chief.coordinator.schedule(chief.add);
    chief.coordinator.join(kPatience);
  }
};

}  // namespace

// Calls in a row, from several peers, as an input has them. Whatever they were, ps, worker and
// chief serve others afterwards.
void sequence(Bytes input) {
  set_log_level(LogLevel::kOff);
  Cluster cluster;
  {
    SequencePlayer player(cluster.reactor, cluster.network.host("rogue"),
                          {.ps = cluster.ps.address(),
                           .worker = cluster.worker.address(),
                           .ps_incarnation = kIncarnation,
                           .chief = rpc::Address::parse("sim://chief")},
                          input);
    player.begin();
    while (player.step()) cluster.reactor.advance(std::chrono::microseconds(200));
  }
  cluster.serve_an_honest_one();
}

}  // namespace cairn::fuzz
