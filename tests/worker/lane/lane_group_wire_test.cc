// Lane.joinGroup: workers that a coordinator puts into a group, and who is refused.
#include <gmock/gmock.h>

#include "collective/peer.capnp.h"
#include "tests/worker/worker_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Workers 3, 4 and 5, and a connection of the coordinator to each one's lane 0.
class LaneGroupWire : public WorkerServerTest {
 protected:
  LaneGroupWire() {
    for (const std::uint32_t task : {4, 5}) {
      WorkerOptions options;
      options.index = task;
      options.address = rpc::Address::parse(str("sim://worker", task));
      options.cluster = "test";
      options.threads = LaneThreads::kShared;
      options.incarnation = 4711 + task;
      others_.push_back(std::make_unique<WorkerServer>(
          cluster.reactor, cluster.network.host(str("worker", task)), options));
    }
    for (const std::uint32_t task : {3, 4, 5}) {
      connections_.push_back(connect_to(task));
      lanes.push_back(connections_.back()->bootstrap<wire::Lane>());
      configure(lanes.back());
    }
  }
  ~LaneGroupWire() noexcept override {}

  std::unique_ptr<rpc::Connection> connect_to(std::uint32_t task,
                                              rpc::Role role = rpc::Role::kCoordinator,
                                              std::uint64_t session = 5,
                                              std::uint32_t endpoint = 1) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.role = role;
    hello.task = role == rpc::Role::kWorker ? 4 : 0;
    hello.session = session;
    hello.endpoint = endpoint;
    return cluster.reactor.wait(cluster.network.host("chief").connect(
        cluster.reactor, rpc::Address::parse(str("sim://worker", task)), hello, 10s));
  }
  static kj::Promise<void> join(wire::Lane::Client lane, std::uint64_t group, std::uint32_t rank,
                                const std::vector<std::uint32_t>& tasks) {
    auto request = lane.joinGroupRequest();
    request.setGroup(group);
    request.setRank(rank);
    auto members = request.initMembers(static_cast<unsigned>(tasks.size()));
    for (unsigned i = 0; i < members.size(); ++i) {
      members[i].setTask(tasks[i]);
      members[i].setAddress(str("sim://worker", tasks[i]));
    }
    return request.send().ignoreResult();
  }
  std::string error_of_join(wire::Lane::Client lane, std::uint64_t group, std::uint32_t rank,
                            const std::vector<std::uint32_t>& tasks) {
    return error_of([&] { wait(join(lane, group, rank, tasks)); });
  }
  void join_all(std::uint64_t group) {
    std::vector<kj::Promise<void>> joined;
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      joined.push_back(join(lanes[rank], group, rank, {3, 4, 5}).eagerlyEvaluate(nullptr));
    for (auto& each : joined) wait(kj::mv(each));
  }
  // Worker 3 calls a lane of worker 4 as a member of `group`; returns the error it gets.
  std::string answer_to_a_member(std::uint64_t group) {
    auto connection = connect_to(3, rpc::Role::kWorker, group);
    return error_of(
        [&] { wait(connection->bootstrap<wire::Member>().pingRequest().send().ignoreResult()); });
  }

  std::vector<wire::Lane::Client> lanes;

 private:
  std::vector<std::unique_ptr<WorkerServer>> others_;
  std::vector<std::unique_ptr<rpc::Connection>> connections_;
};

constexpr const char* kWell = "nothing was thrown";

TEST_F(LaneGroupWire, TheWorkersThatACoordinatorNamesFormAGroupThroughTheirOwnAddresses) {
  join_all(7);
  EXPECT_EQ(answer_to_a_member(7), kWell);
  join_all(8);
  EXPECT_THAT(answer_to_a_member(7), HasSubstr("it is in group 8"));
}

TEST_F(LaneGroupWire, AWorkersConnectionToALaneWithoutAGroupIsRefused) {
  EXPECT_THAT(answer_to_a_member(7), AllOf(StartsWith("Unavailable: "), HasSubstr("no group")));
  auto connection = connect_to(3, rpc::Role::kWorker);
  EXPECT_THAT(error_of([&] {
                wait(connection->bootstrap<wire::Lane>().runRequest().send().ignoreResult());
              }),
              StartsWith("Unavailable: "));
}

TEST_F(LaneGroupWire, WithoutMembersTheLaneLeaves) {
  join_all(7);
  EXPECT_EQ(error_of_join(lanes[0], 0, 0, {}), kWell);
  EXPECT_THAT(answer_to_a_member(7), HasSubstr("it is in no group"));
}

TEST_F(LaneGroupWire, AnotherSessionFindsTheLaneInNoGroup) {
  join_all(7);
  auto successor = connect_to(3, rpc::Role::kCoordinator, 6);
  auto request = successor->bootstrap<wire::Lane>().configureRequest();
  request.setSession(6);
  request.setPipelineDepth(2);
  wait(request.send().ignoreResult());
  EXPECT_THAT(answer_to_a_member(7), HasSubstr("it is in no group"));
}

TEST_F(LaneGroupWire, OnlyTheCoordinatorOfTheSessionPutsALaneIntoAGroup) {
  auto tool = connect_to(3, rpc::Role::kTool);
  EXPECT_THAT(error_of_join(tool->bootstrap<wire::Lane>(), 7, 0, {3}),
              StartsWith("PermissionDenied: Lane.joinGroup is for the chief"));
  auto worker = connect_to(3, rpc::Role::kWorker);
  EXPECT_THAT(error_of_join(worker->bootstrap<wire::Lane>(), 7, 0, {3}),
              StartsWith("Unavailable: "));
  auto other = connect_to(3, rpc::Role::kCoordinator, 6);
  EXPECT_THAT(error_of_join(other->bootstrap<wire::Lane>(), 7, 0, {3}),
              StartsWith("FailedPrecondition: Lane.joinGroup"));
}

TEST_F(LaneGroupWire, WrongNumbersAreRefused) {
  EXPECT_THAT(error_of_join(lanes[0], 0, 0, {3}), StartsWith("InvalidArgument: "));
  EXPECT_THAT(error_of_join(lanes[0], 7, 1, {3}), StartsWith("InvalidArgument: "));
  EXPECT_THAT(error_of_join(lanes[0], 7, 0, {4, 3}), StartsWith("InvalidArgument: "));
  EXPECT_THAT(error_of_join(lanes[0], 7, 0, {3, 4, 4}), StartsWith("InvalidArgument: "));
  EXPECT_THAT(error_of_join(lanes[0], 7, 0, std::vector<std::uint32_t>(2000, 3)),
              AllOf(StartsWith("InvalidArgument: "), HasSubstr("2000 members of a group")));
  auto second = connect_to(3, rpc::Role::kCoordinator, 5, 2);
  EXPECT_THAT(error_of_join(second->bootstrap<wire::Lane>(), 7, 0, {3}),
              AllOf(StartsWith("InvalidArgument: "), HasSubstr("this is lane 1")));
}

TEST_F(LaneGroupWire, AMemberThatIsNotToldIsNamed) {
  EXPECT_THAT(error_of([&] {
                cluster.reactor.wait(join(lanes[0], 7, 0, {3, 4}));
              }),
              AllOf(StartsWith("DeadlineExceeded: "), HasSubstr("/job:worker/task:4")));
}

// Each lane on its own thread, and the servers end while the group stands.
TEST(LaneGroupThreads, LanesOfSeveralProcessesFormGroupsOverSockets) {
  auto reactor = rpc::make_reactor();
  auto network = rpc::make_socket_network();
  std::vector<std::unique_ptr<WorkerServer>> servers;
  std::vector<std::unique_ptr<rpc::Connection>> connections;
  for (std::uint32_t task = 0; task < 3; ++task) {
    WorkerOptions options;
    options.index = task;
    options.address = rpc::Address::parse("127.0.0.1:0");
    options.cluster = "test";
    servers.push_back(std::make_unique<WorkerServer>(*reactor, *network, options));
    rpc::Hello hello;
    hello.cluster = "test";
    hello.role = rpc::Role::kCoordinator;
    hello.session = 5;
    hello.endpoint = 1;
    connections.push_back(
        reactor->wait(network->connect(*reactor, servers.back()->address(), hello, 30s)));
  }
  for (const std::uint64_t group : {7, 8}) {
    std::vector<kj::Promise<void>> joined;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      auto request = connections[rank]->bootstrap<wire::Lane>().joinGroupRequest();
      request.setGroup(group);
      request.setRank(rank);
      auto members = request.initMembers(3);
      for (unsigned i = 0; i < 3; ++i) {
        members[i].setTask(i);
        members[i].setAddress(servers[i]->address().str());
      }
      joined.push_back(request.send().ignoreResult());
    }
    for (auto& each : joined) EXPECT_NO_THROW(reactor->wait(kj::mv(each)));
  }
}

}  // namespace
}  // namespace cairn::worker
