// A ps server over a network, and a client that speaks to its shards.
#pragma once
#include "core/disk/memory_disk.h"
#include "core/graph/wire/wire.h"
#include "ps/server/ps_server.h"
#include "ps/wire/wire_requests.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/connection.h"
#include "rpc/net/sim_network.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

inline constexpr Duration kPatience = std::chrono::seconds(30);

inline rpc::Hello hello_to(std::uint32_t endpoint) {
  rpc::Hello hello;
  hello.cluster = "test";
  hello.role = rpc::Role::kWorker;
  hello.incarnation = 1;
  hello.endpoint = endpoint;
  return hello;
}

inline rpc::Hello coordinator_hello_to(std::uint32_t endpoint,
                                       std::uint64_t session = ShardHarness::kSession) {
  rpc::Hello hello = hello_to(endpoint);
  hello.role = rpc::Role::kCoordinator;
  hello.session = session;
  return hello;
}

// A worker's connection to one shard (endpoint 1 and up) and the coordinator's, with blocking
// calls.
class ShardClient {
 public:
  ShardClient(rpc::Reactor& reactor, rpc::Network& network, const rpc::Address& address,
              std::uint32_t shard = 0, rpc::ConnectionOptions options = {})
      : reactor_(reactor),
        network_(network),
        address_(address),
        endpoint_(shard + 1),
        connection_(reactor.wait(
            network.connect(reactor, address, hello_to(endpoint_), kPatience, options))),
        coordinator_(dial(ShardHarness::kSession)),
        shard(connection_->bootstrap<wire::Shard>()),
        ruled(coordinator_->bootstrap<wire::Shard>()) {}

  template <typename Promise>
  auto wait(Promise promise) {
    return reactor_.wait(reactor_.with_deadline(kj::mv(promise), kPatience, "a call of the test"));
  }

  void configure(const std::vector<TableConfig>& tables,
                 std::uint64_t session = ShardHarness::kSession) {
    if (session != session_) {
      coordinator_ = dial(session);
      ruled = coordinator_->bootstrap<wire::Shard>();
    }
    session_ = session;
    auto request = ruled.configureRequest();
    request.setSession(session);
    request.setLayoutVersion(1);
    request.setSeed(42);
    request.setEpoch(ShardHarness::kEpoch.number);
    auto out = request.initTables(static_cast<unsigned>(tables.size()));
    for (unsigned i = 0; i < tables.size(); ++i) {
      out[i].setVariable(tables[i].variable);
      wire::write(out[i].initSpec(), *tables[i].spec);
      wire::write(out[i].initRule(), tables[i].rule);
      auto parts = out[i].initParts(static_cast<unsigned>(tables[i].parts.size()));
      for (unsigned j = 0; j < parts.size(); ++j) {
        parts[j].setVariable(tables[i].variable);
        parts[j].setIndex(tables[i].parts[j].index);
        parts[j].setBegin(tables[i].parts[j].rows.begin);
        parts[j].setEnd(tables[i].parts[j].rows.end);
      }
    }
    wait(request.send().ignoreResult());
  }
  void open() {
    announce(ShardHarness::kClosures, 0);
    wait(ruled.openRequest().send().ignoreResult());
  }
  void announce(std::uint64_t closures_below, std::uint64_t settled_below) {
    auto request = ruled.announceRequest();
    request.setSession(session_);
    request.setClosuresBelow(closures_below);
    request.setSettledBelow(settled_below);
    wait(request.send().ignoreResult());
  }

  kj::Promise<Floats> pull_later(VariableId variable, std::uint32_t part = 0,
                                 std::uint64_t session = ShardHarness::kSession) {
    auto request = shard.pullRequest();
    request.initStep().setSession(session);
    request.getStep().setIncarnation(1);
    request.getStep().setEpoch(ShardHarness::kEpoch.number);
    auto header = request.initHeaders(1)[0];
    header.setVariable(variable);
    header.setPart(part);
    header.setWhole(true);
    return request.send().then([](auto&& reply) {
      const auto values = reply.getValues();
      Floats out(values.size() / sizeof(float));
      std::copy_n(values.begin(), values.size(), reinterpret_cast<kj::byte*>(out.data()));
      return out;
    });
  }
  Floats pull(VariableId variable, std::uint32_t part = 0,
              std::uint64_t session = ShardHarness::kSession) {
    return wait(pull_later(variable, part, session));
  }

  kj::Promise<bool> push_later(std::uint64_t closure, VariableId variable, const Floats& values,
                               std::uint32_t part = 0, const UpdateRule& rule = sgd()) {
    auto request = shard.pushRequest();
    request.initStep().setSession(ShardHarness::kSession);
    request.getStep().setSentLayout(1);
    request.getStep().setIncarnation(1);
    request.getStep().setEpoch(ShardHarness::kEpoch.number);
    request.getStep().setClosure(closure);
    auto header = request.initHeaders(1)[0];
    header.setVariable(variable);
    header.setPart(part);
    header.setWhole(true);
    header.setLearningRate(1);
    wire::write(header.initRule(), rule);
    request.setValues(
        {reinterpret_cast<const kj::byte*>(values.data()), values.size() * sizeof(float)});
    return request.send().then([](auto&& reply) { return reply.getDuplicate(); });
  }
  bool push(std::uint64_t closure, VariableId variable, const Floats& values,
            std::uint32_t part = 0, const UpdateRule& rule = sgd()) {
    return wait(push_later(closure, variable, values, part, rule));
  }

  void mark(std::uint64_t attempt) {
    auto request = ruled.markRequest();
    request.setAttempt(attempt);
    wait(request.send().ignoreResult());
  }
  kj::Promise<capnp::Response<wire::Shard::SaveResults>> save_later(std::uint64_t attempt,
                                                                    const std::string& folder) {
    auto request = ruled.saveRequest();
    request.setAttempt(attempt);
    request.setFolder(folder);
    return request.send();
  }
  std::uint64_t restore(const std::string& folder, const std::vector<std::string>& databases) {
    auto request = ruled.restoreRequest();
    request.setFolder(folder);
    auto names = request.initDatabases(static_cast<unsigned>(databases.size()));
    for (unsigned i = 0; i < names.size(); ++i) names.set(i, databases[i]);
    kj::Promise<capnp::Response<wire::Shard::RestoreResults>> sent = request.send();
    return wait(kj::mv(sent)).getRows();
  }
  rpc::Connection& connection() { return *connection_; }

 private:
  std::unique_ptr<rpc::Connection> dial(std::uint64_t session) {
    return reactor_.wait(
        network_.connect(reactor_, address_, coordinator_hello_to(endpoint_, session), kPatience));
  }

  rpc::Reactor& reactor_;
  rpc::Network& network_;
  rpc::Address address_;
  std::uint32_t endpoint_;
  std::uint64_t session_ = ShardHarness::kSession;
  std::unique_ptr<rpc::Connection> connection_, coordinator_;

 public:
  wire::Shard::Client shard;  // as a worker has it,
  wire::Shard::Client ruled;  // and as the coordinator has
};

inline PsServerOptions server_options(std::string listen, std::uint32_t shards) {
  PsServerOptions options;
  options.listen = std::move(listen);
  options.cluster = "test";
  options.shards = shards;
  options.incarnation = 100;
  return options;
}

// A ps and its clients in one thread and in virtual time, rows at rest in memory.
struct SimulatedPs {
  explicit SimulatedPs(std::uint32_t shards = 1)
      : network(reactor),
        offload(make_inline_offload()),
        store(storage::make_memory_row_store(disk)),
        server(reactor, network.host("ps"), *offload, *store, server_options("sim://ps", shards)) {}
  ShardClient client(std::uint32_t shard = 0) {
    return {reactor, network.host("worker"), server.address(), shard};
  }
  // One of shard 0, which has `tables` and is open.
  ShardClient open_client(const std::vector<TableConfig>& tables) {
    ShardClient made = client();
    made.configure(tables);
    made.open();
    return made;
  }

  rpc::SimReactor reactor;
  rpc::SimNetwork network;
  MemoryDisk disk;
  std::unique_ptr<Offload> offload;
  std::unique_ptr<storage::RowStore> store;
  PsServer server;
};

}  // namespace cairn::ps
