#include "worker/worker_server.h"

#include <gmock/gmock.h>

#include "core/base/json.h"
#include "tests/worker/worker_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(WorkerServerTest, AClosureSentToALaneTrainsAndAnswers) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  const auto answers = run(lane, {{7, {8, 1}}});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].sequence, 7u);
  ASSERT_EQ(answers[0].outputs.size(), 1u);
  EXPECT_EQ(floats_of(answers[0].outputs[0]), (std::vector<float>{8, 8.125f, 1, 1.125f}));
  EXPECT_TRUE(answers[0].updated);
  EXPECT_EQ(cluster.row(0, 8), 4);
  EXPECT_EQ(cluster.pushes().at(0).incarnation, 21u);
  EXPECT_EQ(connection->peer().endpoints, 3u);
}

TEST_F(WorkerServerTest, AClosuresErrorArrivesWithItsCode) {
  auto connection = connect(2);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  const auto answers = run(lane, {{7, {10}}});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0].error, testing::AllOf(HasSubstr("InvalidArgument: "), HasSubstr("\"w\"")));
}

TEST_F(WorkerServerTest, AnErrorOfAPsKeepsThePsName) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  cluster.before = [](const Asked& asked) -> kj::Promise<void> {
    if (asked.push)
      return rpc::to_kj(Code::kCancelled, "this incarnation is fenced", "/job:ps/task:0");
    return kj::READY_NOW;
  };
  const auto answers = run(lane, {{7, {1}}});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].error, "Cancelled: this incarnation is fenced @/job:ps/task:0");
}

TEST_F(WorkerServerTest, AGraphThatDoesNotVerifyIsRefused) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  EXPECT_THAT(
      error_of([&] { register_function(lane, 1, std::vector<std::byte>(64, std::byte{7})); }),
      HasSubstr("InvalidArgument: "));
}

TEST_F(WorkerServerTest, WhenTheCoordinatorGoesItsClosuresGoAndItsFunctionsStay) {
  {
    auto connection = connect(1);
    auto lane = connection->bootstrap<wire::Lane>();
    configure(lane, 1);
    add_halving(lane);
    cluster.before = [](const Asked&) -> kj::Promise<void> { return kj::NEVER_DONE; };
    auto lost = start(lane, {{7, {1}}});
    ASSERT_TRUE(cluster.run_until([&] { return cluster.asked.size() == 1; }));
    connection->close();
    cluster.reactor.advance(1s);
  }
  EXPECT_EQ(parse_json(server->status_json(), "the status")["lanes"][0]["closures_here"], 0);
  cluster.before = [](const Asked&) -> kj::Promise<void> { return kj::READY_NOW; };
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane, 1);
  EXPECT_EQ(run(lane, {{7, {1}}}).size(), 1u);
}

TEST_F(WorkerServerTest, OnlyTheCoordinatorOfItsSessionSpeaksToALane) {
  auto connection = connect(1), tool = connect(1, rpc::Role::kTool),
       later = connect(1, rpc::Role::kCoordinator, 6);
  auto lane = connection->bootstrap<wire::Lane>(), stranger = tool->bootstrap<wire::Lane>(),
       successor = later->bootstrap<wire::Lane>();
  configure(lane);
  auto refused = [this](auto request) {
    return error_of([&] { wait(request.send().ignoreResult()); });
  };

  EXPECT_THAT(refused(stranger.configureRequest()),
              HasSubstr("PermissionDenied: Lane.configure is for the chief: /job:tool/task:0 at "));
  EXPECT_THAT(refused(stranger.setLayoutRequest()), HasSubstr("Lane.setLayout is for the chief"));
  EXPECT_THAT(refused(stranger.registerRequest()), HasSubstr("Lane.register is for the chief"));
  EXPECT_THAT(refused(stranger.openPipelineRequest()),
              HasSubstr("Lane.openPipeline is for the chief"));
  EXPECT_THAT(refused(stranger.runRequest()), HasSubstr("Lane.run is for the chief"));
  EXPECT_THAT(refused(stranger.holdPushesRequest()), HasSubstr("Lane.holdPushes is for the chief"));
  EXPECT_THAT(refused(stranger.releasePushesRequest()),
              HasSubstr("Lane.releasePushes is for the chief"));
  EXPECT_THAT(refused(successor.runRequest()),
              HasSubstr("FailedPrecondition: Lane.run: this connection is of session 6, the call "
                        "is about session 5"));
}

TEST_F(WorkerServerTest, ACoordinatorWhoseSuccessorHasJoinedHasNoSayAnyMore) {
  auto first = connect(1), control = connect(0, rpc::Role::kCoordinator, 5, 2),
       second = connect(1, rpc::Role::kCoordinator, 5, 2);
  auto lane = first->bootstrap<wire::Lane>(), next = second->bootstrap<wire::Lane>();
  configure(lane);
  auto join = control->bootstrap<wire::TaskControl>().joinRequest();
  join.initClaim().setSession(5);
  wait(join.send().ignoreResult());
  for (const std::string& said : {error_of([&] { wait(lane.runRequest().send().ignoreResult()); }),
                                  error_of([&] { configure(lane); })})
    EXPECT_THAT(said, testing::AllOf(HasSubstr("FailedPrecondition: Lane."),
                                     HasSubstr("of term 0 of session 5"), HasSubstr("in term 2")));
  configure(next);
}

TEST_F(WorkerServerTest, PushesHeldByACoordinatorThatGoesAreHeldNoLonger) {
  auto holder = connect(1);
  auto holding = holder->bootstrap<wire::Lane>();
  configure(holding);
  add_halving(holding);
  wait(holding.holdPushesRequest().send().ignoreResult());
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  auto held = start(lane, {{7, {1}}});
  cluster.reactor.advance(1s);
  EXPECT_THAT(cluster.events(), ElementsAre("pull 7"));
  EXPECT_FALSE(held->finished);
  holder->close();
  EXPECT_TRUE(cluster.run_until([&] { return held->finished; }));
}

TEST_F(WorkerServerTest, TheControlServiceTellsWhoItIsAndPassesTheRequestToEndOn) {
  auto lane_connection = connect(1);
  auto lane = lane_connection->bootstrap<wire::Lane>();
  configure(lane);
  auto connection = connect(0);
  auto control = connection->bootstrap<wire::TaskControl>();
  kj::Promise<capnp::Response<wire::TaskControl::PingResults>> pinged =
      control.pingRequest().send();
  auto ping = wait(kj::mv(pinged));
  EXPECT_EQ(ping.getStatus().getIncarnation(), 4711u);
  EXPECT_EQ(ping.getStatus().getThreads(), 2u);
  EXPECT_EQ(ping.getStatus().getSession(), 5u);
  std::string reason;
  server->on_shutdown([&](const std::string& given) { reason = given; });
  auto request = control.shutdownRequest();
  request.setReason("the job is done");
  wait(request.send().ignoreResult());
  EXPECT_EQ(reason, "the job is done");
}

TEST(WorkerServerThreads, LanesOnThreadsOfTheirOwnAnswerOverASocket) {
  auto reactor = rpc::make_reactor();
  auto network = rpc::make_socket_network();
  WorkerOptions options;
  options.address = rpc::Address::parse("127.0.0.1:0");
  options.cluster = "test";
  options.lanes = 2;
  WorkerServer server(*reactor, *network, options);
  rpc::Hello hello;
  hello.cluster = "test";
  hello.role = rpc::Role::kCoordinator;
  hello.session = 1;
  auto body = [](const std::vector<TraceArgument>& arguments) {
    return Outputs{{"", std::get<Array>(arguments[0]) + 1.0f}};
  };
  const auto traced = trace(body, {TensorType{DType::kFloat32, {}}});
  for (std::uint32_t endpoint : {1u, 2u}) {
    hello.endpoint = endpoint;
    auto connection = reactor->wait(network->connect(*reactor, server.address(), hello, 30s));
    auto lane = connection->bootstrap<wire::Lane>();
    auto configure = lane.configureRequest();
    configure.setSession(1);
    configure.setPipelineDepth(2);
    reactor->wait(configure.send().ignoreResult());
    auto add = lane.registerRequest();
    add.setFunction(1);
    add.setGraph({reinterpret_cast<const kj::byte*>(traced.bytes.data()), traced.bytes.size()});
    reactor->wait(add.send().ignoreResult());
    auto request = lane.runRequest();
    auto closure = request.initClosures(1)[0];
    closure.setFunction(1);
    wire::write(closure.initArguments(1)[0], Tensor::scalar(2.0f));
    kj::Promise<capnp::Response<wire::Lane::RunResults>> sent = request.send();
    auto reply = reactor->wait(kj::mv(sent));
    EXPECT_EQ(wire::read(reply.getResults()[0].getOutputs()[0]).item<float>(), 3.0f);
  }
}

}  // namespace
}  // namespace cairn::worker
