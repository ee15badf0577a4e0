// A worker with two lanes on the simulated network, fake ps beside it, and a coordinator's
// connections to it.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rpc/loop/error_wire.h"
#include "tests/worker/lane/lane_fixture.h"
#include "worker/worker_server.h"

namespace cairn::worker {

class WorkerServerTest : public ::testing::Test {
 protected:
  explicit WorkerServerTest(std::vector<Device*> devices = {}, bool deterministic = false) {
    WorkerOptions options;
    options.devices = std::move(devices);
    options.deterministic = deterministic;
    options.index = 3;
    options.address = rpc::Address::parse("sim://worker3");
    options.cluster = "test";
    options.lanes = 2;
    options.threads = LaneThreads::kShared;
    options.incarnation = 4711;
    server =
        std::make_unique<WorkerServer>(cluster.reactor, cluster.network.host("worker3"), options);
  }

  std::unique_ptr<rpc::Connection> connect(std::uint32_t endpoint,
                                           rpc::Role role = rpc::Role::kCoordinator,
                                           std::uint64_t session = 5, Term term = {}) {
    rpc::Hello hello;
    hello.cluster = "test";
    hello.role = role;
    hello.session = session;
    hello.term = term;
    hello.endpoint = endpoint;
    return cluster.reactor.wait(cluster.network.host("chief").connect(
        cluster.reactor, server->address(), hello, std::chrono::seconds(10)));
  }
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return cluster.reactor.wait(cluster.reactor.with_deadline(
        kj::mv(promise), std::chrono::seconds(30), "a call of the test"));
  }

  void configure(wire::Lane::Client& lane, std::uint32_t depth = 2, bool deterministic = false) {
    auto request = lane.configureRequest();
    request.setSession(5);
    request.setPipelineDepth(depth);
    request.setIncarnation(21);
    request.setDeterministic(deterministic);
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
  void register_function(wire::Lane::Client& lane, FunctionId id,
                         const std::vector<std::byte>& graph) {
    auto request = lane.registerRequest();
    request.setFunction(id);
    request.setGraph({reinterpret_cast<const kj::byte*>(graph.data()), graph.size()});
    wait(request.send().ignoreResult());
  }
  // A closure of function 1, "halving", and what became of it.
  struct Halving {
    std::uint64_t sequence;
    std::vector<std::int64_t> ids;
  };
  struct Answer {
    std::uint64_t sequence = 0;
    std::string error;  // "Code: message @task"
    std::vector<Tensor> outputs;
    bool updated = false;
  };
  // A call under way.
  struct Call {
    std::vector<Answer> answers;
    bool finished = false;
    kj::Promise<void> promise = nullptr;
    std::vector<std::uint64_t> sequences() const {
      std::vector<std::uint64_t> all;
      for (const Answer& answer : answers) all.push_back(answer.sequence);
      return all;
    }
  };
  std::shared_ptr<Call> send(
      capnp::Request<wire::Lane::RunParams, wire::Lane::RunResults> request) {
    auto call = std::make_shared<Call>();
    call->promise = request.send()
                        .then(
                            [raw = call.get()](capnp::Response<wire::Lane::RunResults>&& response) {
                              for (auto result : response.getResults())
                                raw->answers.push_back(read_answer(result));
                              raw->finished = true;
                            },
                            [raw = call.get()](kj::Exception&&) { raw->finished = true; })
                        .eagerlyEvaluate(nullptr);
    return call;
  }
  // One call with these closures.
  std::shared_ptr<Call> start(wire::Lane::Client& lane, const std::vector<Halving>& wanted) {
    auto request = lane.runRequest();
    auto closures = request.initClosures(static_cast<unsigned>(wanted.size()));
    for (unsigned i = 0; i < wanted.size(); ++i) {
      closures[i].setSequence(wanted[i].sequence);
      closures[i].setFunction(1);
      closures[i].setSentLayout(1);
      wire::write(closures[i].initArguments(1)[0], ids_tensor(wanted[i].ids));
    }
    return send(kj::mv(request));
  }
  bool finish(const Call& call) {
    return cluster.run_until([&] { return call.finished; });
  }
  std::vector<Answer> run(wire::Lane::Client& lane, const std::vector<Halving>& wanted) {
    auto call = start(lane, wanted);
    finish(*call);
    return call->answers;
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
  static Answer read_answer(wire::ClosureResult::Reader in) {
    Answer answer{.sequence = in.getSequence(), .updated = in.getUpdated()};
    for (auto output : in.getOutputs()) answer.outputs.push_back(wire::read(output));
    if (!in.hasError()) return answer;
    const ErrorParts parts = rpc::from_error_text(in.getError());
    answer.error =
        str(code_name(parts.code), ": ", parts.message, parts.task.empty() ? "" : " @", parts.task);
    return answer;
  }
  static void write(wire::Layout::Builder out, const Layout& layout) {
    out.setVersion(layout.version);
    auto shards = out.initShards(static_cast<unsigned>(layout.shards.size()));
    for (unsigned i = 0; i < shards.size(); ++i) {
      const ShardReplica& primary = layout.shards[i].primary;
      auto in = shards[i].initPrimary();
      in.setPs(primary.ps);
      in.setAddress(primary.address);
      in.setEndpoint(primary.endpoint);
      in.setProcess(primary.process.number);
      shards[i].setEpoch(layout.shards[i].epoch.number);
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

}  // namespace cairn::worker
