// The Shard interface of rpc/cairn.capnp, served over one connection.
#pragma once
#include <capnp/capability.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/offload.h"
#include "ps/follow/subscriptions.h"
#include "ps/replica/backup.h"
#include "ps/replica/replica_log.h"
#include "ps/shard/shard.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/newest_term.h"

namespace cairn::storage {
class RowStore;
}
namespace cairn::ps {

// One shard and what its services share, over all connections.  Thread: the reactor's.
struct ShardHost {
  ShardHost(LinkParts links, ShardOptions options, Offload& blocking, std::size_t own_lane,
            std::size_t own_pages_lane, storage::RowStore& rows, std::string name)
      : reactor(links.reactor),
        log(std::move(links)),
        shard(reactor.clock(), logged(std::move(options))),
        backup(shard),
        subscriptions(shard, reactor.clock()),
        offload(blocking),
        lane(own_lane),
        pages_lane(own_pages_lane),
        store(rows),
        database(std::move(name)) {}

  rpc::Reactor& reactor;
  ReplicaLog log;  // before the shard, which tells it
  Shard shard;
  Backup backup;
  Subscriptions subscriptions;
  Offload& offload;
  // of the offload, for files and for memory: two a shard
  std::size_t lane, pages_lane;
  storage::RowStore& store;
  std::string database;  // the name of this shard's database in a checkpoint: "ps-0-shard-1"
  std::size_t save_batch_bytes = std::size_t{1} << 20;  // see PsServerOptions
  std::size_t restore_batch_bytes = std::size_t{2} << 20;
  std::size_t run_bytes = std::size_t{64} << 20;  // of rows, see SortedRuns
  // Rows have to leave memory for the disk before others come: resolves when the disk has gone on.
  kj::Promise<void> store_to_go_on();  // this and the next three are in shard_host.cc
  void store_went_on();
  // The same of rows that are restored on demand: all of a table's have come, or none comes.
  kj::Promise<void> restore_to_go_on();
  void restore_went_on();
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_for_store, waiting_for_restore;
  std::uint64_t connections = 0;  // so far
  // the number of the one that configured the shard last; 0: none has
  std::uint64_t in_charge = 0;
  std::function<void(std::uint64_t session)> on_session;  // called for each new session
  std::shared_ptr<const rpc::NewestTerm> terms = std::make_shared<rpc::NewestTerm>();

 private:
  ShardOptions logged(ShardOptions options) {
    options.log = &log;
    return options;
  }
};

// `connection` outlives what is returned, as rpc::Endpoint::serve has it.
wire::Shard::Client serve_shard(std::shared_ptr<ShardHost> host, rpc::Connection& connection);

}  // namespace cairn::ps
