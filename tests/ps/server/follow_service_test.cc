// The calls of readers, over a network: roles, and that a reader makes no others.
#include "ps/server/follow_service.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/ps/server/server_fixture.h"

namespace cairn::ps {
namespace {

struct Reader {
  explicit Reader(SimulatedPs& ps, rpc::Role role = rpc::Role::kReader)
      : reactor(ps.reactor), connection(dial(ps, role)) {}
  static std::unique_ptr<rpc::Connection> dial(SimulatedPs& ps, rpc::Role role) {
    rpc::Hello hello = hello_to(1);
    hello.role = role;
    return ps.reactor.wait(
        ps.network.host("reader").connect(ps.reactor, ps.server.address(), hello, kPatience));
  }
  template <typename Request>
  auto wait(Request request) {
    auto sent = request.send();
    return reactor.wait(kj::mv(sent));
  }
  wire::Shard::Client shard() { return connection->bootstrap<wire::Shard>(); }
  std::uint64_t description() { return wait(shard().describeRequest()).getDescription(); }

  rpc::SimReactor& reactor;
  std::unique_ptr<rpc::Connection> connection;
};

TEST(FollowService, AReaderFollowsAndReadsRowsAndMakesNoOtherCall) {
  SimulatedPs ps;
  ShardClient client = ps.open_client({whole_table(0, variable("v", {2, 1}), sgd())});
  client.push(1, 0, {-1, -2});
  Reader reader(ps);
  const std::uint64_t description = reader.description();

  auto follow = reader.shard().changesRequest();
  follow.setSubscriber(3);
  follow.setDescription(description);
  follow.setBytesMax(1000);
  const auto changes = reader.wait(kj::mv(follow));
  EXPECT_EQ(changes.getRows().size(), 2 * sizeof(std::int64_t));
  EXPECT_EQ(changes.getValues().size(), 2 * sizeof(float));

  const std::int64_t row = 1;
  auto read = reader.shard().readRowsRequest();
  read.setDescription(description);
  auto header = read.initHeaders(1)[0];
  header.setRows(1);
  read.setIds({reinterpret_cast<const kj::byte*>(&row), sizeof(row)});
  const auto rows = reader.wait(kj::mv(read));
  float value = 0;
  ASSERT_EQ(rows.getValues().size(), sizeof(value));
  std::copy_n(rows.getValues().begin(), sizeof(value), reinterpret_cast<kj::byte*>(&value));
  EXPECT_EQ(value, 2);

  EXPECT_THROW(reader.wait(reader.shard().pullRequest()), PermissionDeniedError);
  EXPECT_THROW(reader.wait(reader.shard().pushRequest()), PermissionDeniedError);
  EXPECT_THROW(reader.wait(reader.shard().readStateRequest()), PermissionDeniedError);
  EXPECT_THROW(reader.wait(reader.shard().configureRequest()), PermissionDeniedError);
  EXPECT_THROW(reader.wait(reader.shard().openRequest()), PermissionDeniedError);
}

TEST(FollowService, IsForReaders) {
  SimulatedPs ps;
  ShardClient client = ps.open_client({whole_table(0, variable("v", {2, 1}), sgd())});
  for (const rpc::Role role : {rpc::Role::kWorker, rpc::Role::kCoordinator, rpc::Role::kPs}) {
    Reader other(ps, role);
    EXPECT_THROW(other.description(), PermissionDeniedError);
    EXPECT_THROW(other.wait(other.shard().changesRequest()), PermissionDeniedError);
    EXPECT_THROW(other.wait(other.shard().readRowsRequest()), PermissionDeniedError);
  }
  Reader tool(ps, rpc::Role::kTool);
  EXPECT_NE(tool.description(), 0u);
  EXPECT_THROW(tool.wait(tool.shard().changesRequest()), PermissionDeniedError);
}

TEST(FollowService, AnotherDescriptionIsAnsweredInsteadOfRows) {
  SimulatedPs ps;
  ShardClient client = ps.open_client({whole_table(0, variable("v", {2, 1}), sgd())});
  Reader reader(ps);
  auto read = reader.shard().readRowsRequest();
  read.setDescription(12);
  const auto answer = reader.wait(kj::mv(read));
  EXPECT_EQ(answer.getDescription(), reader.description());
  EXPECT_EQ(answer.getValues().size(), 0u);
}

TEST(FollowService, RefusesARowThatThePartHasNot) {
  SimulatedPs ps;
  ShardClient client = ps.open_client({whole_table(0, variable("v", {2, 1}), sgd())});
  Reader reader(ps);
  const std::int64_t row = 2;
  auto read = reader.shard().readRowsRequest();
  read.setDescription(reader.description());
  read.initHeaders(1)[0].setRows(1);
  read.setIds({reinterpret_cast<const kj::byte*>(&row), sizeof(row)});
  EXPECT_THROW(reader.wait(kj::mv(read)), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::ps
