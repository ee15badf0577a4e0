// A ps on a simulated network, raw streams to it, and a good client beside them.
#pragma once
#include "core/base/offload.h"
#include "core/disk/memory_disk.h"
#include "ps/server/ps_server.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello_io.h"
#include "rpc/net/sim_network.h"
#include "storage/row_store.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {

inline rpc::Hello hello_to_shard(rpc::Role role = rpc::Role::kWorker) {
  rpc::Hello hello;
  hello.cluster = "test";
  hello.token = "secret";
  hello.role = role;
  hello.session = 7;
  hello.incarnation = 1;
  hello.endpoint = 1;
  return hello;
}

inline ps::PsServerOptions small_ps() {
  ps::PsServerOptions options;
  options.listen = "sim://ps";
  options.cluster = "test";
  options.token = "secret";
  options.incarnation = 100;
  options.shard.tables_bytes_max = 1 << 20;
  options.connection.message_bytes_max = 1 << 16;
  return options;
}

struct ServedPs {
  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  ps::PsServer server{reactor, network.host("ps"), *offload, *store, small_ps()};

  // A stream on which everything up to an accepted hello has been said.
  kj::Own<rpc::ByteStream> greeted_stream(rpc::Role role) {
    auto socket = reactor.wait(network.host("rogue").dial(reactor, server.address()));
    auto stream = socket->attach(reactor, rpc::kPlainStream);
    auto greeted = rpc::greet(*stream, hello_to_shard(role), "ps", nullptr);
    reactor.wait(std::move(greeted));
    return stream;
  }
  // True: the ps answers a call of another peer.
  bool answers() {
    auto connection = reactor.wait(network.host("worker").connect(
        reactor, server.address(), hello_to_shard(rpc::Role::kCoordinator),
        std::chrono::seconds(5)));
    auto shard = connection->bootstrap<wire::Shard>();
    auto fenced = shard.fenceRequest().send().ignoreResult();
    reactor.wait(
        reactor.with_deadline(kj::mv(fenced), std::chrono::seconds(5), "a good peer's call"));
    return true;
  }
};

}  // namespace cairn::fuzz
