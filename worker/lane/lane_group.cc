#include "worker/lane/lane_group.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "collective/network/peer_group.h"
#include "rpc/loop/error_wire.h"
#include "rpc/net/hello.h"

namespace cairn::worker {
namespace {

constexpr std::uint32_t kLaneEndpoint = rpc::kControlEndpoint + 1;  // of lane 0

void tell_nobody(const std::string&, const ErrorParts&) {}

NetworkGroupOptions network_options(const LaneGroupOptions& lane, const GroupConfig& config) {
  NetworkGroupOptions options;
  for (const GroupLane& member : config.members)
    options.members.push_back({"worker", member.task, member.address, kLaneEndpoint});
  options.rank = static_cast<int>(config.rank);
  options.start_timeout = lane.form_deadline;
  options.heartbeat_interval = lane.heartbeat.interval;
  options.heartbeats_missed_max = lane.heartbeat.missed_max;
  options.cluster = lane.cluster;
  options.token = lane.token;
  options.incarnation = lane.incarnation.number;
  options.listens = false;
  options.group = config.number;
  return options;
}

// It refers to nothing but what is under way, so that the group may end before it is dropped.
rpc::Task<void> aborted_with_its_group(kj::Promise<std::vector<Tensor>> under_way) {
  std::optional<ErrorParts> ended;
  try {
    co_await kj::mv(under_way);
  } catch (const Error&) {
    ended = error_parts(std::current_exception());
  }
  if (ended) throw AbortedError(ended->message, ended->task);
}

}  // namespace

struct LaneGroup::Membership {
  Membership(rpc::Reactor& reactor, rpc::Network& network, NetworkGroupOptions options)
      : number(options.group), group(reactor, network, std::move(options)) {}
  bool works() const { return formed && !group.error(); }

  const std::uint64_t number;
  PeerGroup group;
  bool formed = false;
  kj::Own<kj::PromiseFulfiller<void>> joined;
  rpc::TaskGroup forming{tell_nobody};  // after the group, to which it refers
};

LaneGroup::LaneGroup(rpc::Reactor& reactor, rpc::Network& network, LaneGroupOptions options)
    : reactor_(reactor), network_(network), options_(std::move(options)), leaving_(tell_nobody) {}

LaneGroup::~LaneGroup() = default;

std::string LaneGroup::name() const { return rpc::task_name(rpc::Role::kWorker, options_.task); }

// Before anything is left or dialled: a wrong word shall not cost a group that works.
void LaneGroup::check(const GroupConfig& config) const {
  if (config.members.empty()) return;
  if (config.number == 0) throw InvalidArgumentError("a group of lanes has a number other than 0");
  if (config.members.size() > kMembersMax || config.rank >= config.members.size())
    throw InvalidArgumentError(str("rank ", config.rank, " of a group of ", config.members.size(),
                                   " lanes, which has at most ", kMembersMax));
  if (options_.lane != 0)
    throw InvalidArgumentError(str("a group is made of lanes 0, and this is lane ", options_.lane));
  if (config.members[config.rank].task != options_.task)
    throw InvalidArgumentError(str("rank ", config.rank, " of group ", config.number, " is worker ",
                                   config.members[config.rank].task, ", and this is ", name()));
  std::set<std::uint32_t> tasks;
  for (const GroupLane& member : config.members) {
    rpc::Address::parse(member.address);
    if (!tasks.insert(member.task).second)
      throw InvalidArgumentError(
          str("worker ", member.task, " is twice in group ", config.number, " of lanes"));
  }
}

kj::Promise<void> LaneGroup::join(GroupConfig config) {
  try {
    check(config);
    leave();
    if (config.members.empty()) return kj::READY_NOW;
    current_ = std::make_shared<Membership>(reactor_, network_, network_options(options_, config));
    auto pair = kj::newPromiseAndFulfiller<void>();
    current_->joined = kj::mv(pair.fulfiller);
    current_->forming.spawn("forming a group of lanes", form(*current_));
    return kj::mv(pair.promise);
  } catch (...) {
    return rpc::to_kj(std::current_exception());
  }
}

rpc::Task<void> LaneGroup::form(Membership& membership) {
  std::optional<ErrorParts> failure;
  try {
    co_await membership.group.form();
  } catch (const Error&) {
    failure = error_parts(std::current_exception());
  }
  if (failure) co_return membership.joined->reject(rpc::to_kj(*failure));
  membership.formed = true;
  membership.joined->fulfill();
}

void LaneGroup::leave() {
  if (current_ == nullptr) return;
  auto left = std::exchange(current_, nullptr);
  left->forming.cancel_all();
  left->joined->reject(rpc::to_kj(
      Code::kAborted, str(name(), " was told to leave group ", left->number, " of lanes")));
  leaving_.spawn("leaving a group of lanes", leave_in_order(std::move(left)));
}

rpc::Task<void> LaneGroup::leave_in_order(std::shared_ptr<Membership> left) {
  co_await left->group.leave();
  reactor_.post([last = std::move(left)] {});  // not from inside one of its own promises
}

void LaneGroup::abort(const ErrorParts& error) {
  if (current_ != nullptr) current_->group.abort(error);
}

std::uint64_t LaneGroup::number() const {
  return current_ != nullptr && current_->works() ? current_->number : 0;
}

int LaneGroup::size() const { return number() == 0 ? 0 : current_->group.size(); }

int LaneGroup::rank() const { return number() == 0 ? -1 : current_->group.rank(); }

kj::Promise<void> LaneGroup::all_reduce(const StepContext&,
                                        std::vector<AllReduceBuffer> reductions) {
  try {
    if (current_ == nullptr)
      throw AbortedError("the function all-reduces: this lane is in no group");
    if (const auto& ended = current_->group.error())
      throw AbortedError(ended->message, ended->task);
    if (!current_->formed)
      throw AbortedError(str("group ", current_->number, " of lanes has not formed yet"));
    CollectiveCall call;
    call.kind = CallKind::kAllReduce;
    call.reductions = std::move(reductions);
    return aborted_with_its_group(current_->group.run(std::move(call))).start();
  } catch (...) {
    return rpc::to_kj(std::current_exception());
  }
}

capnp::Capability::Client LaneGroup::serve(const rpc::PeerInfo& peer, rpc::Connection& connection) {
  if (current_ != nullptr && current_->number == peer.session)
    return current_->group.serve(peer, connection);
  const std::string here = current_ == nullptr ? "no group" : str("group ", current_->number);
  return rpc::to_kj(Code::kUnavailable, str(name(), " has not been told of group ", peer.session,
                                            " of ", peer.name(), ": it is in ", here));
}

}  // namespace cairn::worker
