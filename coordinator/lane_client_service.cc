#include "coordinator/lane_client.h"
#include "coordinator/reply_wire.h"
#include "core/wire.h"
#include "rpc/cairn.capnp.h"

namespace cairn {
namespace {

kj::ArrayPtr<const kj::byte> bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

void write_layout(wire::Layout::Builder out, const Layout& layout) {
  out.setVersion(layout.version);
  out.setSeed(layout.seed);
  auto servers = out.initServers(static_cast<unsigned>(layout.servers.size()));
  for (unsigned i = 0; i < servers.size(); ++i) {
    const ShardServer& server = layout.servers[i];
    servers[i].setPs(server.ps);
    servers[i].setAddress(server.address.c_str());
    servers[i].setIncarnation(server.incarnation);
    servers[i].setShards(server.shards);
    servers[i].setFirstShard(server.first_shard);
  }
  auto variables = out.initVariables(static_cast<unsigned>(layout.variables.size()));
  for (unsigned i = 0; i < variables.size(); ++i) {
    const VariableLayout& variable = layout.variables[i];
    VariableSpec spec = *variable.spec;
    spec.initializer = {};  // a worker makes no rows: the bytes of a given value stay here
    wire::write(variables[i].initSpec(), spec);
    wire::write(variables[i].initRule(), variable.rule);
    auto parts = variables[i].initParts(static_cast<unsigned>(variable.parts.size()));
    for (unsigned j = 0; j < parts.size(); ++j) {
      parts[j].setShard(variable.parts[j].shard);
      parts[j].setBegin(variable.parts[j].rows.begin);
      parts[j].setEnd(variable.parts[j].rows.end);
    }
  }
}

void write_takes(capnp::List<wire::Take>::Builder out, const std::vector<LaneTake>& takes) {
  for (unsigned i = 0; i < takes.size(); ++i) {
    out[i].setPipeline(takes[i].take.pipeline);
    out[i].setOrdinal(takes[i].take.ordinal);
    out[i].setCount(takes[i].take.count);
    out[i].setStateOrdinal(takes[i].state_ordinal);
    out[i].setState(bytes_of(takes[i].state));
  }
}

}  // namespace

struct LaneClient::Stub {
  wire::Lane::Client lane;
};

LaneClient::LaneClient(std::unique_ptr<rpc::Connection> connection)
    : connection_(std::move(connection)), stub_(std::make_unique<Stub>(Stub{connection_->bootstrap<wire::Lane>()})) {}
LaneClient::~LaneClient() = default;

rpc::Task<void> LaneClient::configure(LaneConfiguration configuration) {
  auto request = stub_->lane.configureRequest();
  request.setSession(configuration.session);
  request.setLane(configuration.lane);
  request.setPipelineDepth(configuration.pipeline_depth);
  request.setIncarnation(configuration.incarnation);
  request.setBfloat16Products(configuration.bfloat16_products);
  request.setEncoding(configuration.bfloat16_wire ? wire::Encoding::BFLOAT16 : wire::Encoding::RAW);
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::set_layout(std::shared_ptr<const Layout> layout) {
  auto request = stub_->lane.setLayoutRequest();
  write_layout(request.initLayout(), *layout);
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::register_function(std::uint32_t id, std::shared_ptr<const ConcreteFunction> function) {
  auto request = stub_->lane.registerRequest();
  request.setFunction(id);
  request.setGraph(bytes_of(function->bytes));
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::open_pipeline(std::uint64_t pipeline, std::vector<std::byte> description) {
  auto request = stub_->lane.openPipelineRequest();
  request.setPipeline(pipeline);
  request.setDescription(bytes_of(description));
  co_await request.send().ignoreResult();
}

rpc::Task<LaneReply> LaneClient::run(const Closure& closure, const std::vector<LaneTake>& takes, std::uint64_t low_watermark,
                                     std::uint64_t layout_version, std::size_t lane_number) {
  auto request = stub_->lane.runRequest();
  auto out = request.initClosure();
  out.setSequence(closure.sequence);
  out.setFunction(closure.function->id);
  out.setLowWatermark(low_watermark);
  out.setGlobalStep(closure.global_step);
  out.setLayoutVersion(layout_version);
  if (!closure.arguments.empty()) {
    auto arguments = out.initArguments(static_cast<unsigned>(closure.arguments.size()));
    for (unsigned i = 0; i < arguments.size(); ++i) {
      bool own = i < closure.per_worker.size() && closure.per_worker[i];
      wire::write(arguments[i], own ? closure.per_worker[i]->at(lane_number) : closure.arguments[i]);
    }
  }
  if (!takes.empty()) write_takes(out.initTakes(static_cast<unsigned>(takes.size())), takes);
  auto promise = request.send();
  auto response = co_await kj::mv(promise);
  co_return read_reply(response.getResult());
}

rpc::Task<void> LaneClient::hold_pushes() { co_await stub_->lane.holdPushesRequest().send().ignoreResult(); }
rpc::Task<void> LaneClient::release_pushes() { co_await stub_->lane.releasePushesRequest().send().ignoreResult(); }

struct WorkerControlClient::Stub {
  wire::WorkerControl::Client control;
};
WorkerControlClient::WorkerControlClient(std::unique_ptr<rpc::Connection> connection)
    : connection_(std::move(connection)), stub_(std::make_unique<Stub>(Stub{connection_->bootstrap<wire::WorkerControl>()})) {}
WorkerControlClient::~WorkerControlClient() = default;
kj::Promise<void> WorkerControlClient::ping() { return stub_->control.pingRequest().send().ignoreResult(); }
rpc::Task<std::string> WorkerControlClient::status() {
  auto response = co_await stub_->control.statusRequest().send();
  co_return std::string(response.getJson());
}

}  // namespace cairn
