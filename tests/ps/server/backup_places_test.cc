// The endpoints of a ps behind those of its own shards, which hold backups of other ps' rows.
#include <gmock/gmock.h>

#include "core/base/json.h"
#include "tests/ps/replica/replica_calls.h"
#include "tests/storage/fixture.h"

namespace cairn::ps {
namespace {

using testing::HasSubstr;

std::vector<TableConfig> one_small_table() {
  return {whole_table(0, variable("v", {400, 4}, Initializer::uniform(-1, 1)), adagrad())};
}

// Two ps of two shards each, in one loop or on threads.
template <typename Networks>
struct TwoPs {
  static constexpr std::uint32_t kShards = 2;

  explicit TwoPs(std::size_t memory_limit = 0) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      PsServerOptions options = server_options(networks.listen(i), kShards);
      options.index = i;
      options.incarnation = 100 + i;
      options.memory_limit = memory_limit;
      options.row_log_folder = folder.path();
      servers.push_back(std::make_unique<PsServer>(networks.reactor(), networks.of_ps(i), *offload,
                                                   *store, std::move(options)));
    }
  }
  std::unique_ptr<rpc::Connection> dial(rpc::Role role, std::uint32_t ps, std::uint32_t endpoint) {
    rpc::Hello hello = coordinator_hello_to(endpoint);
    hello.role = role;
    return networks.reactor().wait(networks.of_clients().connect(
        networks.reactor(), servers[ps]->address(), hello, kPatience));
  }
  ShardClient client(std::uint32_t ps, std::uint32_t endpoint) {
    dial(rpc::Role::kCoordinator, ps, endpoint);
    return {networks.reactor(), networks.of_clients(), servers[ps]->address(), endpoint - 1};
  }
  Json places(std::uint32_t ps) {
    return parse_json(servers[ps]->status_json(), "a status").at("places");
  }

  Networks networks;
  storage::TempFolder folder;
  MemoryDisk disk;
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  std::unique_ptr<Offload> offload = networks.make_offload();
  std::vector<std::unique_ptr<PsServer>> servers;
};

class Simulated {
 public:
  rpc::Reactor& reactor() { return reactor_; }
  std::string listen(std::uint32_t ps) { return str("sim://ps-", ps); }
  rpc::Network& of_ps(std::uint32_t ps) { return network_.host(str("ps-", ps)); }
  rpc::Network& of_clients() { return network_.host("client"); }
  std::unique_ptr<Offload> make_offload() { return make_inline_offload(); }

 private:
  rpc::SimReactor reactor_;
  rpc::SimNetwork network_{reactor_};
};

class Sockets {
 public:
  rpc::Reactor& reactor() { return *reactor_; }
  std::string listen(std::uint32_t) { return "tcp://127.0.0.1:0"; }
  rpc::Network& of_ps(std::uint32_t) { return *network_; }
  rpc::Network& of_clients() { return *network_; }
  std::unique_ptr<Offload> make_offload() { return make_thread_offload(2); }

 private:
  std::unique_ptr<rpc::Reactor> reactor_ = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network();
};

// Places begin behind the control endpoint and those of the shards.
constexpr std::uint32_t kFirstPlace = 3, kEndOfPlaces = 3 + 2 * kBackupsMax;

TEST(BackupPlaces, OnlyACoordinatorMakesOne) {
  TwoPs<Simulated> ps;
  for (const rpc::Role role : {rpc::Role::kWorker, rpc::Role::kPs, rpc::Role::kReader})
    EXPECT_THROW(ps.dial(role, 0, kFirstPlace), UnavailableError);
  EXPECT_TRUE(ps.places(0).empty());

  ps.dial(rpc::Role::kCoordinator, 0, kFirstPlace);
  EXPECT_NO_THROW(ps.dial(rpc::Role::kWorker, 0, kFirstPlace));
  EXPECT_THROW(ps.dial(rpc::Role::kWorker, 0, kFirstPlace + 1), UnavailableError);
}

TEST(BackupPlaces, ThereAreSevenForEachShard) {
  TwoPs<Simulated> ps;
  EXPECT_NO_THROW(ps.dial(rpc::Role::kCoordinator, 0, kEndOfPlaces - 1));
  EXPECT_THROW(ps.dial(rpc::Role::kCoordinator, 0, kEndOfPlaces), NotFoundError);
}

TEST(BackupPlaces, GreetingsCountTheShardsAlone) {
  TwoPs<Simulated> ps;
  EXPECT_EQ(ps.dial(rpc::Role::kCoordinator, 0, kFirstPlace)->peer().endpoints, kFirstPlace);
  EXPECT_EQ(ps.dial(rpc::Role::kReader, 0, 1)->peer().endpoints, kFirstPlace);
  EXPECT_EQ(ps.servers[0]->shards(), 2u);
}

TEST(BackupPlaces, TheStatusShowsThoseInUse) {
  TwoPs<Simulated> ps;
  ShardClient place = ps.client(0, kFirstPlace + 4);
  place.configure(one_small_table());
  const Json places = ps.places(0);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].at("endpoint"), kFirstPlace + 4);
  EXPECT_EQ(places[0].at("session"), ShardHarness::kSession);
  EXPECT_EQ(places[0].at("epoch"), ShardHarness::kEpoch.number);
  EXPECT_EQ(places[0].at("open"), false);
  EXPECT_EQ(places[0].at("rows"), 400);
  EXPECT_GE(places[0].at("bytes"), 400 * 4 * 2 * sizeof(float));
}

TEST(BackupPlaces, EachSavesUnderANameOfItsOwn) {
  TwoPs<Simulated> ps;
  std::vector<std::string> names;
  for (const std::uint32_t endpoint : {1u, kFirstPlace, kFirstPlace + 1}) {
    ShardClient client = ps.client(1, endpoint);
    client.configure(one_small_table());
    client.open();
    client.push(1, 0, Floats(1600, 1), 0, adagrad());
    client.mark(1);
    auto saving = client.save_later(1, "/checkpoint");
    const auto saved = client.wait(kj::mv(saving));
    const std::string file = saved.getFiles()[0].getName();
    names.push_back(file.substr(0, file.find('/')));
  }
  EXPECT_THAT(names, testing::ElementsAre("ps-1-shard-0", "ps-1-place-0", "ps-1-place-1"));
}

TEST(BackupPlaces, APsWithAMemoryLimitHasNone) {
  TwoPs<Simulated> ps(std::size_t{1} << 30);
  try {
    ps.dial(rpc::Role::kCoordinator, 0, kFirstPlace);
    ADD_FAILURE() << "a place was made";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("replicas need all rows in memory"));
  }
  EXPECT_NO_THROW(ps.dial(rpc::Role::kWorker, 0, 1));
}

// Each shard of ps 0 has a backup on ps 1, which takes over.
template <typename Networks>
void take_over_both_shards() {
  TwoPs<Networks> ps;
  std::vector<Floats> rows;
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    ShardClient primary = ps.client(0, 1 + shard), backup = ps.client(1, kFirstPlace + shard);
    primary.configure(one_small_table());
    primary.open();
    backup.configure(one_small_table());
    primary.push(1, 0, Floats(1600, 0.5f), 0, adagrad());
    set_backups(primary, {{1, ps.servers[1]->address().str(), kFirstPlace + shard, 101}});
    for (std::uint64_t closure = 2; closure < 20; ++closure)
      primary.push(closure, 0, Floats(1600, 0.25f), 0, adagrad());
    until_caught_up(primary);
    primary.push(20, 0, Floats(1600, static_cast<float>(shard)), 0, adagrad());
    rows.push_back(primary.pull(0));
  }
  ps.servers[0]->stop();
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    ShardClient backup = ps.client(1, kFirstPlace + shard);
    EXPECT_EQ(promoted_rows(backup), rows[shard]);
  }
  EXPECT_NE(rows[0], rows[1]);
}

TEST(BackupPlaces, TakeOverTheShardsOfAnotherPs) { take_over_both_shards<Simulated>(); }
TEST(BackupPlaces, TakeOverTheShardsOfAnotherPsOverSocketsAndOnThreads) {
  take_over_both_shards<Sockets>();
}

TEST(BackupPlaces, EndWithTheirPsWhileRowsAreBeingCopied) {
  TwoPs<Sockets> ps;
  ShardClient primary = ps.client(0, 1), backup = ps.client(1, kFirstPlace);
  const auto large = whole_table(0, variable("v", {200000, 4}, Initializer::uniform(-1, 1)), sgd());
  primary.configure({large});
  primary.open();
  backup.configure({large});
  primary.push(1, 0, Floats(800000, 1));
  set_backups(primary, {{1, ps.servers[1]->address().str(), kFirstPlace, 101}});
  ps.servers[1]->stop();
  EXPECT_THROW(backup.pull(0), UnavailableError);
  EXPECT_EQ(primary.pull(0).size(), 800000u);
}

}  // namespace
}  // namespace cairn::ps
