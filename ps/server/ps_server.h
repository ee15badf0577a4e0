// PsServer: a ps process without the process: one listening address, a control service, and a shard
// per thread.
//
// Behind the endpoints of its own shards are those of backup places, up to kBackupsMax per shard:
// shards that hold copies of other ps' rows, and answer for them if that ps is lost. A place is
// made when a coordinator first connects to its endpoint, and shares the thread of one of the
// shards. Greetings count the endpoints without them. A ps with a memory limit has none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/base/offload.h"
#include "ps/replica/replication_options.h"
#include "ps/shard/shard.h"
#include "rpc/loop/waits.h"
#include "rpc/net/network.h"
#include "rpc/server/server.h"
#include "storage/row_store.h"

namespace cairn::ps {

// So much is gathered on a shard's loop at a time, of records as they are: pulls and pushes come
// between two batches, and the memory for a save is bounded.
inline constexpr std::size_t kSaveBatchBytes = std::size_t{1} << 20;

// So much is read at a time of rows that are restored on demand: requests come between two batches.
inline constexpr std::size_t kRestoreBatchBytes = std::size_t{2} << 20;

struct PsServerOptions {
  std::uint32_t index = 0;  // of the task
  std::string listen = "tcp://127.0.0.1:0";
  std::string cluster;
  std::string token;
  bool insecure = false;
  std::uint32_t shards = 1;        // threads; endpoints 1 to `shards`
  std::string shards_why;          // for people: why so many
  ProcessIncarnation incarnation;  // none: drawn at random
  // Its lineage begins with the process's number. SaveMemory::bytes are split over the shards; a
  // backup place may use as much as a shard.
  ShardOptions shard;
  // For all that the process takes: rows of hashed tables for which it is too small lie in
  // `row_log_folder`, which is made and goes with the process. 0: no bound, and all are in memory.
  std::size_t memory_limit = 0;
  std::string row_log_folder;
  rpc::ConnectionOptions connection;
  ReplicationOptions replication;
  std::size_t save_batch_bytes = kSaveBatchBytes;
  std::size_t restore_batch_bytes = kRestoreBatchBytes;
};

class PsServer {
 public:
  // Listens at once. The control service runs on `control`; each shard on a thread of its own, or,
  // if `control` is simulated, all on it. All that is passed by reference outlives the server;
  // `store` outlives `offload`, which ends what it has begun.
  //   Errors  those of Network::listen and rpc::Acceptor.
  //   Thread  `control`'s.
  PsServer(rpc::Reactor& control, rpc::Network& network, Offload& offload, storage::RowStore& store,
           PsServerOptions options);
  ~PsServer();  // stop()

  const rpc::Address& address() const;  // with the real port
  ProcessIncarnation incarnation() const;
  std::size_t shards() const;
  const ShardCounters& counters(std::size_t shard) const;  // of shard 0, 1, ...
  // For tests whose reactor is simulated: the shard at this endpoint; null: there is none.
  Shard* shard_at(std::uint32_t endpoint) const;
  std::string status_json() const;
  std::vector<rpc::NamedLoop> loops() const;  // of the shards, where they have loops of their own
  // `handler` is called once, when a peer has asked over the wire that this process end.
  void on_shutdown(std::function<void(const std::string& reason)> handler);
  // Ends connections and threads. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::ps
