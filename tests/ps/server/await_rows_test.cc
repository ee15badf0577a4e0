// Requests that wait for rows, or for room to copy them aside, over the wire.
#include <gmock/gmock.h>

#include "tests/ps/server/server_fixture.h"
#include "tests/ps/shard/held_rows.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

struct PsWithHeldRows {
  PsWithHeldRows() : server(reactor, network.host("ps"), *offload, *store, options()) {
    client.configure({whole_table(0, variable("a", {4}), sgd()),
                      whole_table(1, variable("b", {2}, Initializer::constant(2)), sgd())});
    client.open();
  }
  PsServerOptions options() {
    PsServerOptions options = server_options("sim://ps", 1);
    options.shard.row_source = &source;
    return options;
  }
  void run_until_idle() { client.wait(reactor.sleep(std::chrono::seconds(1))); }

  HeldRows source;
  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  PsServer server;
  ShardClient client{reactor, network.host("worker"), server.address(), 0};
};

TEST(RowWaitsServed, PullsAndPushesAreAnsweredWhenTheirRowsAreHere) {
  PsWithHeldRows ps;
  ps.source.hold("a", 3, 30);
  auto push = ps.client.push_later(1, 0, {1, 1, 1, 1});
  auto pull = ps.client.pull_later(0);
  EXPECT_THAT(ps.client.pull(1), ElementsAre(2, 2));  // others go by
  EXPECT_FALSE(ps.client.push(2, 1, {1, 1}));
  ASSERT_THAT(ps.source.fetching, SizeIs(1));
  ps.source.release();
  EXPECT_FALSE(ps.client.wait(kj::mv(push)));
  EXPECT_THAT(ps.client.wait(kj::mv(pull)), ElementsAre(-1, -1, -1, 29));
}

TEST(RowWaitsServed, WhatWaitsGoesWithItsConnection) {
  PsWithHeldRows ps;
  ps.source.hold("a", 3, 30);
  auto push = ps.client.push_later(1, 0, {1, 1, 1, 1});
  auto pull = ps.client.pull_later(0);
  ps.run_until_idle();
  ps.client.connection().close();
  ps.run_until_idle();
  ASSERT_THAT(ps.source.fetching, SizeIs(1));
  ps.source.release();
  ps.run_until_idle();

  ShardClient next(ps.reactor, ps.network.host("worker"), ps.server.address(), 0);
  EXPECT_THAT(next.pull(0), ElementsAre(0, 0, 0, 30));
  EXPECT_FALSE(next.push(1, 0, {1, 1, 1, 1}));  // it was never done
  EXPECT_THAT(next.pull(0), ElementsAre(-1, -1, -1, 29));
}

TEST(RowWaitsServed, AFailureReachesTheCaller) {
  PsWithHeldRows ps;
  ps.source.hold("a", 3, 30);
  auto push = ps.client.push_later(1, 0, {1, 1, 1, 1});
  auto pull = ps.client.pull_later(0);
  ps.run_until_idle();
  ps.source.fail(std::make_exception_ptr(DataLossError("the disk")));
  EXPECT_THROW(ps.client.wait(kj::mv(push)), DataLossError);
  EXPECT_THROW(ps.client.wait(kj::mv(pull)), DataLossError);
}

// A table of four blocks, of which few rows may be copied aside.
struct PsWithLittleSaveMemory {
  static constexpr std::int64_t kElements = 64 * 1024;
  PsWithLittleSaveMemory() : server(reactor, network.host("ps"), *offload, *store, options()) {
    client.configure({whole_table(0, variable("a", {64, 1024}), sgd())});
    client.open();
    client.push(1, 0, Floats(kElements, -1));
    client.mark(1);
  }
  static PsServerOptions options() {
    PsServerOptions options = server_options("sim://ps", 1);
    options.shard.save_memory.bytes = CopyPool::kSlabBytes;
    return options;
  }

  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  PsServer server;
  ShardClient client{reactor, network.host("worker"), server.address(), 0};
};

TEST(SaveMemoryServed, APushAtTheBoundIsAnsweredWhenTheCheckpointHasItsRows) {
  PsWithLittleSaveMemory ps;
  auto push = ps.client.push_later(2, 0, Floats(ps.kElements, -1));
  ps.client.wait(ps.reactor.sleep(std::chrono::seconds(1)));
  EXPECT_THAT(ps.client.pull(0), testing::Each(1));
  const auto saved = ps.client.wait(ps.client.save_later(1, "/ckpt"));
  EXPECT_EQ(saved.getRows(), 64u);
  EXPECT_FALSE(ps.client.wait(kj::mv(push)));
  EXPECT_THAT(ps.client.pull(0), testing::Each(2));
}

TEST(SaveMemoryServed, AWaitThatDoesNotEndIsRefusedAndSaysForWhat) {
  PsWithLittleSaveMemory ps;
  auto push = ps.client.push_later(2, 0, Floats(ps.kElements, -1));
  try {
    ps.client.wait(kj::mv(push));
    ADD_FAILURE() << "it was applied";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cut 1 is saved: its save has not begun"));
  }
  ps.client.wait(ps.client.save_later(1, "/ckpt"));
  EXPECT_THAT(ps.client.pull(0), testing::Each(1));  // nothing of it was done
  EXPECT_FALSE(ps.client.push(2, 0, Floats(ps.kElements, -1)));
  EXPECT_THAT(ps.client.pull(0), testing::Each(2));
}

}  // namespace
}  // namespace cairn::ps
