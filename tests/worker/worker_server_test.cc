#include "worker/worker_server.h"

#include <gmock/gmock.h>

#include "core/json.h"
#include "tests/worker/lane_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// A worker with two lanes on the simulated network, and a coordinator's connections to it.
class WorkerServerTest : public testing::Test {
 protected:
  WorkerServerTest() {
    WorkerOptions options;
    options.index = 3;
    options.address = rpc::Address::parse("sim://worker3");
    options.cluster = "test";
    options.lanes = 2;
    options.threads = LaneThreads::kShared;
    options.incarnation = 4711;
    server = std::make_unique<WorkerServer>(cluster.reactor, cluster.network.host("worker3"), options);
  }

  std::unique_ptr<rpc::Connection> connect(std::uint32_t endpoint) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.role = rpc::Role::kCoordinator;
    hello.session = 5;
    hello.endpoint = endpoint;
    return cluster.reactor.wait(cluster.network.host("chief").connect(cluster.reactor, server->address(), hello, 10s));
  }
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return cluster.reactor.wait(cluster.reactor.with_deadline(kj::mv(promise), 30s, "a call of the test"));
  }

  void configure(wire::Lane::Client& lane, std::uint32_t depth = 2) {
    auto request = lane.configureRequest();
    request.setSession(5);
    request.setPipelineDepth(depth);
    request.setIncarnation(21);
    wait(request.send().ignoreResult());
    auto layout = lane.setLayoutRequest();
    write(layout.initLayout(), *cluster.layout);
    wait(layout.send().ignoreResult());
  }
  void add_halving(wire::Lane::Client& lane) {
    const Variable w(cluster.layout->variables.at(0).spec);
    auto body = [&](const std::vector<TraceArgument>& arguments) {
      const Array ids = std::get<Array>(arguments[0]);
      const Array rows = w.gather(ids);
      w.update(kSgdRule, IndexedSlices{ids, rows, w.shape()}, Array(0.5f));
      return Outputs{{"", rows}};
    };
    register_function(lane, 1, trace(body, {TensorType{DType::kInt64, {Shape::kUnknown}}}).bytes);
  }
  void register_function(wire::Lane::Client& lane, FunctionId id, const std::vector<std::byte>& graph) {
    auto request = lane.registerRequest();
    request.setFunction(id);
    request.setGraph({reinterpret_cast<const kj::byte*>(graph.data()), graph.size()});
    wait(request.send().ignoreResult());
  }
  kj::Promise<capnp::Response<wire::Lane::RunResults>> run(wire::Lane::Client& lane, std::uint64_t sequence, std::vector<std::int64_t> ids) {
    auto request = lane.runRequest();
    auto closure = request.initClosure();
    closure.setSequence(sequence);
    closure.setFunction(1);
    closure.setLayoutVersion(1);
    wire::write(closure.initArguments(1)[0], ids_tensor(ids));
    return request.send();
  }
  template <typename Act>
  std::string error_of(Act act) {
    try {
      act();
    } catch (const Error& error) {
      return str(code_name(error.code()), ": ", error.what(), " @", error.task());
    }
    return "nothing was thrown";
  }
  static void write(wire::Layout::Builder out, const Layout& layout) {
    out.setVersion(layout.version);
    auto servers = out.initServers(static_cast<unsigned>(layout.servers.size()));
    for (unsigned i = 0; i < servers.size(); ++i) {
      servers[i].setPs(layout.servers[i].ps);
      servers[i].setAddress(layout.servers[i].address);
      servers[i].setIncarnation(layout.servers[i].incarnation);
      servers[i].setShards(layout.servers[i].shards);
      servers[i].setFirstShard(layout.servers[i].first_shard);
    }
    auto variables = out.initVariables(static_cast<unsigned>(layout.variables.size()));
    for (unsigned i = 0; i < variables.size(); ++i) {
      wire::write(variables[i].initSpec(), *layout.variables[i].spec);
      wire::write(variables[i].initRule(), layout.variables[i].rule);
      auto parts = variables[i].initParts(static_cast<unsigned>(layout.variables[i].parts.size()));
      for (unsigned j = 0; j < parts.size(); ++j) {
        parts[j].setShard(layout.variables[i].parts[j].shard);
        parts[j].setBegin(layout.variables[i].parts[j].rows.begin);
        parts[j].setEnd(layout.variables[i].parts[j].rows.end);
      }
    }
  }

  FakeCluster cluster{2, {{"w", {10, 2}}}};
  std::unique_ptr<WorkerServer> server;
};

TEST_F(WorkerServerTest, AClosureSentToALaneTrainsAndAnswers) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  auto reply = wait(run(lane, 7, {8, 1}));
  const auto result = reply.getResult();
  ASSERT_EQ(result.getOutputs().size(), 1u);
  EXPECT_EQ(floats_of(wire::read(result.getOutputs()[0])), (std::vector<float>{8, 8.125f, 1, 1.125f}));
  EXPECT_TRUE(result.getUpdated());
  EXPECT_EQ(cluster.row(0, 8), 4);
  EXPECT_EQ(cluster.pushes().at(0).incarnation, 21u);
  EXPECT_EQ(connection->peer().endpoints, 3u);
}

TEST_F(WorkerServerTest, AClosuresErrorArrivesWithItsCodeAndTheWorkersName) {
  auto connection = connect(2);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  EXPECT_THAT(error_of([&] { wait(run(lane, 7, {10})); }), testing::AllOf(HasSubstr("InvalidArgument: "), HasSubstr("\"w\""), HasSubstr("@/job:worker/task:3")));
}

TEST_F(WorkerServerTest, AnErrorOfAPsKeepsThePsName) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  cluster.before = [](const Asked& asked) -> kj::Promise<void> {
    if (asked.push) return rpc::to_kj(Code::kCancelled, "this incarnation is fenced", "/job:ps/task:0");
    return kj::READY_NOW;
  };
  EXPECT_THAT(error_of([&] { wait(run(lane, 7, {1})); }), HasSubstr("Cancelled: this incarnation is fenced @/job:ps/task:0"));
}

TEST_F(WorkerServerTest, AGraphThatDoesNotVerifyIsRefused) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  EXPECT_THAT(error_of([&] { register_function(lane, 1, std::vector<std::byte>(64, std::byte{7})); }), HasSubstr("InvalidArgument: "));
}

TEST_F(WorkerServerTest, WhenTheCoordinatorGoesItsClosuresGoAndItsFunctionsStay) {
  {
    auto connection = connect(1);
    auto lane = connection->bootstrap<wire::Lane>();
    configure(lane, 1);
    add_halving(lane);
    cluster.before = [](const Asked&) -> kj::Promise<void> { return kj::NEVER_DONE; };
    auto lost = run(lane, 7, {1}).then([](auto&&) {}, [](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.asked.size() == 1; }));
    connection->close();
    cluster.reactor.advance(1s);
  }
  EXPECT_EQ(parse_json(server->status_json(), "the status")["lanes"][0]["closures_here"], 0);
  cluster.before = [](const Asked&) -> kj::Promise<void> { return kj::READY_NOW; };
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane, 1);
  wait(run(lane, 7, {1}).ignoreResult());
}

TEST_F(WorkerServerTest, PushesHeldByACoordinatorThatGoesAreHeldNoLonger) {
  auto holder = connect(1);
  auto holding = holder->bootstrap<wire::Lane>();
  configure(holding);
  add_halving(holding);
  wait(holding.holdPushesRequest().send().ignoreResult());
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  bool finished = false;
  auto held = run(lane, 7, {1}).then([&](auto&&) { finished = true; }).eagerlyEvaluate(nullptr);
  cluster.reactor.advance(1s);
  EXPECT_THAT(cluster.events(), ElementsAre("pull 7"));
  EXPECT_FALSE(finished);
  holder->close();
  EXPECT_TRUE(cluster.run_until([&] { return finished; }));
}

TEST_F(WorkerServerTest, TheControlServiceTellsWhoItIsAndPassesTheRequestToEndOn) {
  auto lane_connection = connect(1);
  auto lane = lane_connection->bootstrap<wire::Lane>();
  configure(lane);
  auto connection = connect(0);
  auto control = connection->bootstrap<wire::WorkerControl>();
  kj::Promise<capnp::Response<wire::WorkerControl::PingResults>> pinged = control.pingRequest().send();
  auto ping = wait(kj::mv(pinged));
  EXPECT_EQ(ping.getStatus().getIncarnation(), 4711u);
  EXPECT_EQ(ping.getStatus().getLanes(), 2u);
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
  auto body = [](const std::vector<TraceArgument>& arguments) { return Outputs{{"", std::get<Array>(arguments[0]) + 1.0f}}; };
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
    request.initClosure().setFunction(1);
    wire::write(request.getClosure().initArguments(1)[0], Tensor::scalar(2.0f));
    kj::Promise<capnp::Response<wire::Lane::RunResults>> sent = request.send();
    auto reply = reactor->wait(kj::mv(sent));
    EXPECT_EQ(wire::read(reply.getResult().getOutputs()[0]).item<float>(), 3.0f);
  }
}

}  // namespace
}  // namespace cairn::worker
