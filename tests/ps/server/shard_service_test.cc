// The services over a network: simulated, and real sockets with RocksDB and threads.
#include <gmock/gmock.h>

#include "rpc/net/shared_memory.h"
#include "storage/manifest.h"
#include "tests/ps/server/server_fixture.h"
#include "tests/storage/fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kTableRows = 3000;

std::vector<TableConfig> one_table(std::int64_t parts = 1, std::int64_t part = 0,
                                   UpdateRule rule = adagrad()) {
  auto spec = variable("table", {kTableRows, 16}, Initializer::uniform(-1, 1));
  const RowRange rows = split_rows(kTableRows, parts)[static_cast<std::size_t>(part)];
  return {{0, std::move(spec), rule, {{static_cast<std::uint32_t>(part), rows}}}};
}

TEST(ShardService, PullsAndPushesOverTheWire) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(
      {whole_table(0, variable("small", {2, 2}), sgd()),
       whole_table(1, variable("large", {kTableRows, 16}, Initializer::uniform(-1, 1)), sgd())});
  const Floats large = client.pull(1);
  ASSERT_EQ(large.size(), static_cast<std::size_t>(kTableRows) * 16);

  EXPECT_FALSE(client.push(1, 0, {1, 2, 3, 4}));
  EXPECT_TRUE(client.push(1, 0, {1, 2, 3, 4}));
  EXPECT_FALSE(client.push(2, 1, Floats(large.size(), 0.5f)));

  EXPECT_THAT(client.pull(0), ElementsAre(-1, -2, -3, -4));
  const Floats after = client.pull(1);
  for (std::size_t i = 0; i < large.size(); ++i) ASSERT_EQ(after[i], large[i] - 0.5f);
}

TEST(ShardService, ErrorsKeepTheirCodeAndNameTheTask) {
  SimulatedPs ps;
  ShardClient client = ps.client();
  EXPECT_THROW(client.pull(0), UnavailableError);  // not open yet
  client.configure(one_table());
  client.open();
  EXPECT_THROW(client.pull(3), NotFoundError);
  EXPECT_THROW(client.pull(0, 0, 99), FailedPreconditionError);
  try {
    client.push(1, 0, {1, 2, 3});
    ADD_FAILURE() << "too few values were taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'table'"));
    EXPECT_EQ(error.task(), "/job:ps/task:0");
  }
}

// Sends the request. The error of the call, "Code: message".
template <typename Request>
std::string refusal(ShardClient& client, Request request) {
  try {
    client.wait(request.send().ignoreResult());
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "nothing was refused";
}

TEST(ShardService, AWorkerPullsAndPushesAndNothingElse) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(one_table());
  client.mark(1);
  auto refused = [](const std::string& call) {
    return HasSubstr(call + " is for the chief: /job:worker/task:0 at ");
  };

  EXPECT_THAT(refusal(client, client.shard.configureRequest()),
              refused("PermissionDenied: Shard.configure"));
  EXPECT_THAT(refusal(client, client.shard.openRequest()), refused("Shard.open"));
  EXPECT_THAT(refusal(client, client.shard.announceRequest()), refused("Shard.announce"));
  EXPECT_THAT(refusal(client, client.shard.applyRoundRequest()), refused("Shard.applyRound"));
  EXPECT_THAT(refusal(client, client.shard.fenceRequest()), refused("Shard.fence"));
  EXPECT_THAT(refusal(client, client.shard.markRequest()), refused("Shard.mark"));
  EXPECT_THAT(refusal(client, client.shard.saveRequest()), refused("Shard.save"));
  EXPECT_THAT(refusal(client, client.shard.dropMarkRequest()), refused("Shard.dropMark"));
  EXPECT_THAT(refusal(client, client.shard.restoreRequest()), refused("Shard.restore"));
  EXPECT_THAT(refusal(client, client.shard.findDatabasesRequest()), refused("Shard.findDatabases"));
  EXPECT_THAT(refusal(client, client.shard.removeRowsRequest()), refused("Shard.removeRows"));
  EXPECT_THAT(refusal(client, client.ruled.pushRequest()),
              HasSubstr("PermissionDenied: Shard.push is for the worker: /job:chief/task:0 at "));
  EXPECT_THAT(refusal(client, client.ruled.pullRequest()),
              HasSubstr("Shard.pull is for the worker"));
  EXPECT_EQ(client.pull(0).size(), static_cast<std::size_t>(kTableRows) * 16);
}

TEST(ShardService, ACoordinatorThatWasReplacedHasNoSayAnyMore) {
  SimulatedPs ps;
  ShardClient old = ps.client(), young = ps.client();
  old.configure(one_table());
  old.open();
  young.configure(one_table(), ShardHarness::kSession + 1);

  EXPECT_THAT(refusal(old, old.ruled.openRequest()),
              HasSubstr("FailedPrecondition: Shard.open: this connection is of session 7, the call "
                        "is about session 8"));
  EXPECT_THAT(refusal(old, old.ruled.markRequest()), HasSubstr("session 8"));
  auto request = old.ruled.configureRequest();
  request.setSession(ShardHarness::kSession + 1);
  EXPECT_THAT(refusal(old, kj::mv(request)), HasSubstr("this connection is of session 7"));
  young.open();
}

TEST(ShardService, ACheckpointsFolderIsOnePathForAllProcesses) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(one_table());
  for (const std::string folder : {"c", "/c/../elsewhere", "..", ""}) {
    SCOPED_TRACE(folder);
    client.mark(5);
    EXPECT_THROW(client.wait(client.save_later(5, folder)), InvalidArgumentError);
    EXPECT_THROW(client.restore(folder, {"ps-0-shard-0"}), InvalidArgumentError);
    // it is still open
    EXPECT_EQ(client.pull(0).size(), static_cast<std::size_t>(kTableRows) * 16);
  }
}

TEST(ShardService, APushWhoseAnswerWasLostIsAppliedOnce) {
  SimulatedPs ps;
  ShardClient client = ps.open_client({whole_table(0, variable("w", {2, 2}), sgd())});
  ps.network.drop_next("ps", "worker");
  EXPECT_THROW(client.push(41, 0, {1, 1, 1, 1}), UnavailableError);

  ShardClient again = ps.client();
  EXPECT_TRUE(again.push(41, 0, {1, 1, 1, 1}));
  EXPECT_THAT(again.pull(0), ElementsAre(-1, -1, -1, -1));
}

// Until then the shard may still read there: with an answer the worker would use the place again.
TEST(ShardService, APieceInSharedMemoryIsAnsweredWhenItsPushIs) {
  SimulatedPs ps;
  rpc::ConnectionOptions options;
  options.shared_bytes = 1 << 20;
  ShardClient client(ps.reactor, ps.network.host("worker"), ps.server.address(), 0, options);
  client.configure({whole_table(0, variable("w", {2, 2}), sgd())});
  client.open();
  auto* memory = reinterpret_cast<float*>(client.connection().peer().shared->data());
  auto push_row = [&](std::uint32_t piece) {
    auto request = client.shard.pushRequest();
    request.initStep().setSession(ShardHarness::kSession);
    request.getStep().setSentLayout(1);
    request.getStep().setIncarnation(1);
    request.getStep().setEpoch(ShardHarness::kEpoch.number);
    request.getStep().setClosure(1);
    auto header = request.initHeaders(1)[0];
    header.setRows(1);
    header.setLearningRate(1);
    wire::write(header.initRule(), sgd());
    const std::int64_t row = piece;
    request.setIds({reinterpret_cast<const kj::byte*>(&row), sizeof row});
    auto place = request.initValuesAt(1)[0];
    place.setOffset(8 * piece);
    place.setBytes(8);
    request.setPiece(piece);
    request.setPieces(2);
    return request.send().ignoreResult();
  };
  std::copy_n(Floats{1, 2, 3, 4}.begin(), 4, memory);
  bool answered = false;
  auto first = push_row(0).then([&] { answered = true; }).eagerlyEvaluate(nullptr);
  ps.reactor.advance(std::chrono::seconds(1));
  EXPECT_FALSE(answered);
  client.wait(push_row(1));
  ps.reactor.advance(std::chrono::seconds(1));
  EXPECT_TRUE(answered);
  EXPECT_THAT(client.pull(0), ElementsAre(-1, -2, -3, -4));
}

// Else a small message could make a shard read the whole memory a million times.
TEST(ShardService, PlacesTakeNoMoreThanTheMemoryThatTheyLieIn) {
  SimulatedPs ps;
  rpc::ConnectionOptions options;
  options.shared_bytes = 64 << 10;
  ShardClient client(ps.reactor, ps.network.host("worker"), ps.server.address(), 0, options);
  client.configure({whole_table(0, variable("w", {5000, 2}), sgd())});
  client.open();
  auto request = client.shard.pushRequest();
  request.initStep().setSession(ShardHarness::kSession);
  request.getStep().setSentLayout(1);
  request.getStep().setIncarnation(1);
  request.getStep().setEpoch(ShardHarness::kEpoch.number);
  auto headers = request.initHeaders(2);
  auto places = request.initValuesAt(2);
  for (unsigned i = 0; i < 2; ++i) {
    headers[i].setWhole(true);
    wire::write(headers[i].initRule(), sgd());
    places[i].setBytes(40'000);
  }
  try {
    client.wait(request.send().ignoreResult());
    ADD_FAILURE() << "80,000 bytes of 65,536 were taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("the 2 places of a push's values take 80000 bytes of a shared memory of 65536"));
  }
}

TEST(ShardService, ASaveWhileOthersPushHoldsTheStateAtTheMark) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(one_table());
  client.push(1, 0, Floats(kTableRows * 16, 1), 0, adagrad());
  const Floats at_mark = client.pull(0);
  client.mark(5);
  auto saving = client.save_later(5, "/c/ckpt-00000005");
  for (std::uint64_t closure = 2; closure < 6; ++closure)
    client.push(closure, 0, Floats(kTableRows * 16, 1), 0, adagrad());
  const auto saved = client.wait(kj::mv(saving));
  EXPECT_EQ(saved.getRows(), static_cast<std::uint64_t>(kTableRows));
  EXPECT_STREQ(saved.getFiles()[0].getName().cStr(), "ps-0-shard-0/rows");
  EXPECT_NE(client.pull(0), at_mark);

  EXPECT_EQ(client.restore("/c/ckpt-00000005", {"ps-0-shard-0"}),
            static_cast<std::uint64_t>(kTableRows));
  EXPECT_THROW(client.pull(0), UnavailableError);
  client.open();
  EXPECT_EQ(client.pull(0), at_mark);
}

TEST(ShardService, ASaveWhoseConnectionIsLostDropsItsMark) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(one_table());
  client.push(1, 0, Floats(kTableRows * 16, 1), 0, adagrad());
  client.mark(5);
  auto saving = client.save_later(5, "/c/ckpt-00000005");
  ps.network.cut("ps", "worker");
  EXPECT_THROW(client.wait(kj::mv(saving)), UnavailableError);
  ps.network.heal_all();
  ShardClient again = ps.client();
  again.mark(6);
  EXPECT_GT(again.wait(again.save_later(6, "/c/ckpt-00000006")).getRows(), 0u);
}

// Messages of different connections arrive in any order: what was sent before a connection was
// given up may come after what was sent by the next one.
TEST(ShardService, WhatAnEarlierConnectionStillAsksForIsRefusedOnceALaterOneHasConfigured) {
  SimulatedPs ps;
  const std::vector<TableConfig> tables{whole_table(0, variable("w", {2}), sgd())};
  ShardClient earlier = ps.client(), later = ps.client();
  earlier.configure(tables);
  later.configure(tables);
  later.open();
  later.push(1, 0, {1, 2});

  EXPECT_THROW(earlier.restore("/nowhere", {}), UnavailableError);
  EXPECT_THROW(earlier.configure(tables), UnavailableError);
  EXPECT_THROW(earlier.mark(1), UnavailableError);
  EXPECT_THAT(later.pull(0), ElementsAre(-1, -2));
}

TEST(ShardService, ARotOnTheDiskIsDataLossAndNeverHalfAModel) {
  SimulatedPs ps;
  ShardClient client = ps.open_client(one_table());
  client.push(1, 0, Floats(kTableRows * 16, 1), 0, adagrad());
  client.mark(5);
  client.wait(client.save_later(5, "/c"));
  ps.disk.flip_bit("/c/ps-0-shard-0/rows", ps.disk.size("/c/ps-0-shard-0/rows") - 100);
  EXPECT_THROW(client.restore("/c", {"ps-0-shard-0"}), DataLossError);
  EXPECT_THROW(client.open(), FailedPreconditionError);
  EXPECT_THROW(client.restore("/c", {"../elsewhere"}), InvalidArgumentError);
  EXPECT_THROW(client.restore("/c", {"ps-9-shard-9"}), NotFoundError);
}

TEST(PsServerControl, TellsWhoItIsAndHowItsShardsAre) {
  SimulatedPs ps(2);
  ShardClient client = ps.client(1);
  client.configure(one_table());
  client.open();
  client.pull(0);
  ps.reactor.run_ready();
  auto connection = ps.reactor.wait(ps.network.host("chief").connect(
      ps.reactor, ps.server.address(), coordinator_hello_to(0), kPatience));
  auto control = connection->bootstrap<wire::TaskControl>();
  kj::Promise<capnp::Response<wire::TaskControl::PingResults>> pinged =
      control.pingRequest().send();
  const auto pong = ps.reactor.wait(kj::mv(pinged));
  EXPECT_EQ(pong.getStatus().getIncarnation(), 100u);
  EXPECT_EQ(pong.getStatus().getThreads(), 2u);
  EXPECT_EQ(pong.getStatus().getSession(), ShardHarness::kSession);
  kj::Promise<capnp::Response<wire::TaskControl::StatusResults>> asked =
      control.statusRequest().send();
  const auto status = ps.reactor.wait(kj::mv(asked));
  EXPECT_THAT(std::string(status.getJson()),
              testing::AllOf(HasSubstr("\"rows\":3000"), HasSubstr("\"pulls\":1")));

  auto stranger = ps.reactor.wait(
      ps.network.host("worker").connect(ps.reactor, ps.server.address(), hello_to(0), kPatience));
  auto asked_by_a_worker =
      stranger->bootstrap<wire::TaskControl>().shutdownRequest().send().ignoreResult();
  EXPECT_THROW(ps.reactor.wait(kj::mv(asked_by_a_worker)), PermissionDeniedError);
  std::string reason;
  ps.server.on_shutdown([&](const std::string& told) { reason = told; });
  auto shutdown = control.shutdownRequest();
  shutdown.setReason("the test is over");
  ps.reactor.wait(shutdown.send().ignoreResult());
  EXPECT_EQ(reason, "the test is over");
}

// The whole of it as cairn-ps has it: sockets, a thread a shard, RocksDB.
struct RealPs {
  explicit RealPs(std::uint32_t shards)
      : reactor(rpc::make_reactor()),
        network(rpc::make_socket_network()),
        store(storage::make_rocks_row_store()),
        offload(make_thread_offload(2)),
        server(*reactor, *network, *offload, *store, server_options("tcp://127.0.0.1:0", shards)) {}
  ShardClient client(std::uint32_t shard) { return {*reactor, *network, server.address(), shard}; }

  std::unique_ptr<rpc::Reactor> reactor;
  std::unique_ptr<rpc::Network> network;
  std::unique_ptr<storage::RowStore> store;
  std::unique_ptr<Offload> offload;
  PsServer server;
};

TEST(PsServer, ACheckpointOfTwoShardsRestoresOntoOneTwoThreeAndFive) {
  const storage::TempFolder folder;
  std::vector<std::string> databases;
  Floats trained;
  {
    RealPs ps(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      ShardClient client = ps.client(i);
      client.configure(one_table(2, i));
      client.open();
      client.push(1, 0, Floats(kTableRows * 8, 1), i, adagrad());
      const Floats rows = client.pull(0, i);
      trained.insert(trained.end(), rows.begin(), rows.end());
      client.mark(1);
      auto saving = client.save_later(1, folder.path());
      for (std::uint64_t closure = 2; closure < 20; ++closure)
        client.push(closure, 0, Floats(kTableRows * 8, 1), i, adagrad());
      const auto saved = client.wait(kj::mv(saving));
      EXPECT_EQ(saved.getRows(), static_cast<std::uint64_t>(kTableRows) / 2);
      std::vector<storage::FileInfo> files;
      for (const auto file : saved.getFiles())
        files.push_back({file.getName(), file.getBytes(), file.getChecksum()});
      for (const auto& database : storage::group_by_database(files))
        databases.push_back(database.name);
      for (const auto& file : files)
        EXPECT_EQ(storage::file_info(system_disk(), folder.path() + "/" + file.name, file.name),
                  file);
    }
  }
  EXPECT_THAT(databases, ElementsAre("ps-0-shard-0", "ps-0-shard-1"));
  for (const std::uint32_t shards : {1, 2, 3, 5}) {
    RealPs ps(shards);
    Floats restored;
    for (std::uint32_t i = 0; i < shards; ++i) {
      ShardClient client = ps.client(i);
      client.configure(one_table(shards, i));
      client.restore(folder.path(), databases);
      client.open();
      const Floats rows = client.pull(0, i);
      restored.insert(restored.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(restored, trained) << shards << " shards";
  }
}

TEST(PsServer, StopsWhileASaveIsUnderWay) {
  const storage::TempFolder folder;
  RealPs ps(1);
  ShardClient client = ps.client(0);
  client.configure(one_table());
  client.open();
  client.push(1, 0, Floats(kTableRows * 16, 1), 0, adagrad());
  client.mark(1);
  auto saving = client.save_later(1, folder.path());
  client.pull(0);  // the save has begun
  ps.server.stop();
  try {
    client.wait(kj::mv(saving));
  } catch (const UnavailableError&) {
  }
}

}  // namespace
}  // namespace cairn::ps
