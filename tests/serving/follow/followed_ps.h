// A ps on a real network, with threads of its own, and those who train and follow it.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/disk/memory_disk.h"
#include "rpc/loop/reactor_thread.h"
#include "serving/follow/row_stream.h"
#include "storage/row_store.h"
#include "tests/ps/server/server_fixture.h"
#include "tests/serving/follow/row_copy.h"

namespace cairn::serving {

inline ps::TableConfig hashed_table(VariableId id, const std::string& name, std::int64_t dim = 2) {
  VariableSpec spec{.name = name, .shape = {std::int64_t{1} << 40, dim}};
  spec.hashed = true;
  return ps::whole_table(id, std::make_shared<const VariableSpec>(spec), ps::sgd());
}

// Adds one to each element of these rows, ascending.
inline void push_rows(ps::ShardClient& client, std::uint64_t closure, VariableId variable,
                      const std::vector<std::int64_t>& ids, std::int64_t dim) {
  auto request = client.shard.pushRequest();
  request.initStep().setSession(ps::ShardHarness::kSession);
  request.getStep().setSentLayout(1);
  request.getStep().setIncarnation(1);
  request.getStep().setEpoch(ps::ShardHarness::kEpoch.number);
  request.getStep().setClosure(closure);
  request.getStep().setGlobalStep(static_cast<std::int64_t>(closure));
  auto header = request.initHeaders(1)[0];
  header.setVariable(variable);
  header.setRows(static_cast<std::uint32_t>(ids.size()));
  header.setLearningRate(1);
  wire::write(header.initRule(), ps::sgd());
  request.setIds(
      {reinterpret_cast<const kj::byte*>(ids.data()), ids.size() * sizeof(std::int64_t)});
  const std::vector<float> values(ids.size() * static_cast<std::size_t>(dim), -1);
  request.setValues(
      {reinterpret_cast<const kj::byte*>(values.data()), values.size() * sizeof(float)});
  client.wait(request.send().ignoreResult());
}

class FollowedPs {
 public:
  explicit FollowedPs(ps::PsServerOptions options = ps::server_options("tcp://127.0.0.1:0", 2)) {
    start(std::move(options));
  }
  ~FollowedPs() { stop(); }
  void start(ps::PsServerOptions options) {
    control.run([&] {
      server =
          std::make_unique<ps::PsServer>(control.reactor(), *network, *offload, *store, options);
    });
  }
  void stop() {
    control.run([&] { server.reset(); });
  }
  std::string address() const { return server->address().str(); }
  ps::ShardClient client(std::uint32_t shard) {
    return {*reactor, *network, server->address(), shard};
  }
  ps::ShardClient open_client(std::uint32_t shard, const std::vector<ps::TableConfig>& tables) {
    ps::ShardClient made = client(shard);
    made.configure(tables);
    made.open();
    return made;
  }
  RowStreamOptions options() const { return {.ps = {address()}, .cluster = "test"}; }

  std::unique_ptr<rpc::Reactor> reactor = rpc::make_reactor();  // of the clients
  std::unique_ptr<rpc::Network> network = rpc::make_socket_network();
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  rpc::ReactorThread control{"ps"};
  std::unique_ptr<ps::PsServer> server;
};

// Applies what comes until `done` says so of the copy. False: a minute has passed.
template <typename Done>
bool follow_until(RowStream& stream, RowCopy& copy, Done done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  RowChanges changes;
  while (!done(copy)) {
    if (std::chrono::steady_clock::now() > until) return false;
    if (stream.next(changes, std::chrono::milliseconds(100))) copy.apply(changes);
  }
  return true;
}

}  // namespace cairn::serving
