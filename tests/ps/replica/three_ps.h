// Three ps over a simulated network, of which one may have backups on the others.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/ps/replica/replica_calls.h"

namespace cairn::ps {

inline std::vector<TableConfig> replicated_tables(std::int64_t rows) {
  return {whole_table(0, variable("v", {rows, 4}, Initializer::uniform(-1, 1)), adagrad())};
}

// Three ps of one shard each, with the same tables; the first one's is open.
struct ThreePs {
  explicit ThreePs(std::int64_t rows = 400, std::uint64_t seed = 1,
                   const ReplicationOptions& replication = {})
      : network(reactor, {.seed = seed}),
        offload(make_inline_offload()),
        store(storage::make_memory_row_store(disk)) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      PsServerOptions options = server_options("sim://" + name(i), 1);
      options.index = i;
      options.incarnation = 100 + i;
      options.replication = replication;
      servers.push_back(std::make_unique<PsServer>(reactor, network.host(name(i)), *offload, *store,
                                                   std::move(options)));
      clients.push_back(std::make_unique<ShardClient>(reactor, network.host("worker"),
                                                      servers.back()->address(), 0));
      clients.back()->configure(replicated_tables(rows));
    }
    primary().open();
  }
  static std::string name(std::uint32_t i) { return str("ps-", i); }
  ShardClient& primary() { return *clients[0]; }
  ShardReplica replica(std::uint32_t i) {
    return {i, servers[i]->address().str(), 1, servers[i]->incarnation()};
  }
  void set_backups(const std::vector<std::uint32_t>& ps, Lease lease = Lease::kNone) {
    std::vector<ShardReplica> backups;
    for (const std::uint32_t i : ps) backups.push_back(replica(i));
    ps::set_backups(primary(), backups, lease);
  }
  BackupNews news(std::uint64_t seen) { return news_of_backups(primary(), seen); }
  void until_caught_up() { ps::until_caught_up(primary()); }
  // The backup on ps `i` answers for the rows from now on. Nothing of theirs is pulled before.
  Floats promoted_rows(std::uint32_t i) { return ps::promoted_rows(*clients[i]); }
  void push(std::uint64_t closure, float value) {
    primary().push(closure, 0, Floats(rows() * 4, value), 0, adagrad());
  }
  std::size_t rows() { return primary().pull(0).size() / 4; }

  rpc::SimReactor reactor;
  rpc::SimNetwork network;
  MemoryDisk disk;
  std::unique_ptr<Offload> offload;
  std::unique_ptr<storage::RowStore> store;
  std::vector<std::unique_ptr<PsServer>> servers;
  std::vector<std::unique_ptr<ShardClient>> clients;
};

}  // namespace cairn::ps
