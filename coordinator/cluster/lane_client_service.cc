#include "coordinator/cluster/lane_client.h"
#include "coordinator/cluster/reply_wire.h"
#include "core/graph/wire/wire.h"
#include "rpc/cairn.capnp.h"
#include "rpc/wire/layout_wire.h"

namespace cairn {
namespace {

// Room for what a message holds around its closures.
constexpr std::size_t kHeadWords = 64;

kj::ArrayPtr<const kj::byte> bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

void write_takes(capnp::List<wire::Take>::Builder out, std::span<const LaneTake> takes) {
  for (unsigned i = 0; i < takes.size(); ++i) {
    out[i].setPipeline(takes[i].take.pipeline);
    out[i].setOrdinal(takes[i].take.ordinal);
    out[i].setCount(takes[i].take.count);
    out[i].setStateOrdinal(takes[i].state_ordinal);
    out[i].setState(bytes_of(takes[i].state));
  }
}

// The lane that runs the closure gets its own part of a per-worker value. It is chosen when the
// message is written, because when the closure is scheduled its lane is not known yet.
const Tensor& argument(const Closure& closure, std::size_t i, std::size_t lane) {
  const bool own = i < closure.per_worker.size() && closure.per_worker[i];
  return own ? closure.per_worker[i]->at(lane) : closure.arguments[i];
}

// The layout's version is the lane's and not the one that the closure asks for: its pushes are
// judged by the layout that they were really laid out by.
void write_closure(wire::Closure::Builder out, const Closure& closure,
                   std::span<const LaneTake> takes, const LaneMessage& message) {
  out.setSequence(closure.sequence);
  out.setFunction(closure.function->id);
  out.setGlobalStep(closure.global_step);
  out.setSentLayout(message.sent_layout);
  out.setRound(closure.share.round);
  out.setMember(closure.share.member);
  out.setGroup(closure.share.group);
  out.setBase(closure.share.base);
  out.setAhead(closure.share.ahead);
  if (!closure.arguments.empty()) {
    auto arguments = out.initArguments(static_cast<unsigned>(closure.arguments.size()));
    for (unsigned i = 0; i < arguments.size(); ++i)
      wire::write(arguments[i], argument(closure, i, message.lane_number));
  }
  if (!takes.empty()) write_takes(out.initTakes(static_cast<unsigned>(takes.size())), takes);
}

}  // namespace

// Generated types stay in this file: the header is read by parts that know nothing of the wire.
struct LaneClient::Stub {
  wire::Lane::Client lane;
};

LaneClient::LaneClient(std::unique_ptr<rpc::Connection> connection)
    : connection_(std::move(connection)),
      stub_(std::make_unique<Stub>(Stub{connection_->bootstrap<wire::Lane>()})) {}
LaneClient::~LaneClient() = default;

rpc::Task<void> LaneClient::configure(LaneConfiguration configuration) {
  auto request = stub_->lane.configureRequest();
  request.setSession(configuration.session);
  request.setLane(configuration.lane);
  request.setPipelineDepth(configuration.pipeline_depth);
  request.setIncarnation(configuration.incarnation.number);
  request.setArithmetic(static_cast<wire::Arithmetic>(configuration.products));
  request.setCheckCopies(configuration.check_copies);
  request.setDeterministic(configuration.deterministic);
  request.setEncoding(configuration.bfloat16_wire ? wire::Encoding::BFLOAT16 : wire::Encoding::RAW);
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::set_layout(std::shared_ptr<const Layout> layout) {
  auto request = stub_->lane.setLayoutRequest();
  wire::write(request.initLayout(), *layout);
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::register_function(std::uint32_t id,
                                              std::shared_ptr<const ConcreteFunction> function) {
  auto request = stub_->lane.registerRequest();
  request.setFunction(id);
  request.setGraph(bytes_of(function->bytes));
  co_await request.send().ignoreResult();
}

rpc::Task<void> LaneClient::open_pipeline(std::uint64_t pipeline,
                                          std::vector<std::byte> description) {
  auto request = stub_->lane.openPipelineRequest();
  request.setPipeline(pipeline);
  request.setDescription(bytes_of(description));
  co_await request.send().ignoreResult();
}

rpc::Task<std::vector<LaneReply>> LaneClient::run(LaneMessage message) {
  // The size is given in advance, so that the message is built in one segment instead of being
  // grown.
  auto request = stub_->lane.runRequest(
      capnp::MessageSize{kHeadWords + message.bytes / sizeof(capnp::word), 0});
  if (!message.closures.empty()) {
    auto closures = request.initClosures(static_cast<unsigned>(message.closures.size()));
    std::span<const LaneTake> takes(message.takes);
    for (unsigned i = 0; i < closures.size(); ++i) {
      const Closure& closure = *message.closures[i];
      write_closure(closures[i], closure, takes.first(closure.takes.size()), message);
      takes = takes.subspan(closure.takes.size());
    }
  }
  // The closures live on in the lane's list; the copies of iterator states need not wait for the
  // answer.
  message = {};
  auto promise = request.send();
  auto response = co_await kj::mv(promise);
  const std::string worker = connection_->peer().name();
  std::vector<LaneReply> replies;
  // A worker may be wrong: lists that it sends are bounded before they are walked through.
  for (auto result : wire::bounded(response.getResults(), kReplyListMax, "results"))
    replies.push_back(read_reply(result, worker));
  co_return replies;
}

// An estimate, by which messages are cut and their first segment is allocated. A closure that needs
// more gets a further segment, so that nothing depends on its being exact.
std::size_t LaneClient::message_bytes(const Closure& closure, std::size_t lane) {
  std::size_t bytes = 128 + closure.takes.size() * 64;
  for (std::size_t i = 0; i < closure.arguments.size(); ++i) {
    const Tensor& tensor = argument(closure, i, lane);
    bytes += 96;
    if (tensor.dtype() != DType::kString)
      bytes += tensor.bytes();
    else
      for (const std::string& text : tensor.string_values()) bytes += 16 + text.size();
  }
  return bytes;
}

// Answered when no push of the lane is under way, with the number of closures that have ended on
// this connection. As many answers have to be read here before a cut knows what became of them.
rpc::Task<std::uint64_t> LaneClient::hold_pushes() {
  auto promise = stub_->lane.holdPushesRequest().send();
  auto response = co_await kj::mv(promise);
  co_return response.getEnded();
}
rpc::Task<void> LaneClient::release_pushes() {
  co_await stub_->lane.releasePushesRequest().send().ignoreResult();
}

rpc::Task<void> LaneClient::join_group(std::uint64_t number, std::uint32_t rank,
                                       std::vector<LaneGroupMember> members) {
  auto request = stub_->lane.joinGroupRequest();
  request.setGroup(number);
  request.setRank(rank);
  auto list = request.initMembers(static_cast<unsigned>(members.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setTask(members[i].task);
    list[i].setAddress(members[i].address.c_str());
  }
  co_await request.send().ignoreResult();
}

}  // namespace cairn
