#include "rpc/server/control_session.h"

#include <utility>

#include "rpc/loop/error_wire.h"
#include "rpc/loop/task.h"
#include "rpc/server/claim_wire.h"

namespace cairn::rpc {
namespace {

// A worker's control service had an interface of its own once, with the same methods and fields.
constexpr std::uint64_t kWorkerControlId = 0xfbc28941a6b4403d;

}  // namespace

Endpoint control_endpoint(Reactor& reactor, TaskHooks hooks) {
  auto owner = std::make_shared<TaskOwner>(reactor.clock());
  auto shared = std::make_shared<const TaskHooks>(std::move(hooks));
  return {&reactor, [owner, shared](const PeerInfo&, Connection& connection) {
            return wire::TaskControl::Client(kj::heap<ControlSession>(shared, owner, connection));
          }};
}

capnp::Capability::Server::DispatchCallResult ControlSession::dispatchCall(
    std::uint64_t interface_id, std::uint16_t method,
    capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) {
  if (interface_id == kWorkerControlId) interface_id = capnp::typeId<wire::TaskControl>();
  return Server::dispatchCall(interface_id, method, context);
}

kj::Promise<void> ControlSession::ping(PingContext context) {
  // The coordinator's heartbeat. It shows that the owner lives, so it is noted before anything that
  // may fail; and the answer shows which process is here.
  owner_->heard(this);
  return at_once([&] {
    const TaskState state = hooks_->state();
    auto out = context.initResults().initStatus();
    out.setIncarnation(state.incarnation.number);
    out.setThreads(state.threads);
    out.setSession(state.session);
  });
}

// Any peer that passed the greeting may ask, which is how `cairn status` looks at a task.
kj::Promise<void> ControlSession::status(StatusContext context) {
  return at_once([&] { context.initResults().setJson(hooks_->status_json()); });
}

kj::Promise<void> ControlSession::shutdown(ShutdownContext context) {
  return at_once([&] {
    connection_.allow({Role::kCoordinator}, "TaskControl.shutdown");
    const auto reason = context.getParams().getReason();
    hooks_->shutdown({reason.begin(), reason.size()});
  });
}

// Asked before anything is configured, so that a coordinator that was started by mistake does not
// end another one's session. This object's address names the connection to the owner.
kj::Promise<void> ControlSession::join(JoinContext context) {
  return at_once([&] {
    connection_.allow({Role::kCoordinator}, "TaskControl.join");
    const std::uint64_t configured = hooks_->state().session;
    ClaimAnswer answer = owner_->join(this, read(context.getParams().getClaim()),
                                      connection_.peer().address, [this] { connection_.close(); });
    answer.configured = configured;
    write(context.initResults().initAnswer(), answer);
  });
}

}  // namespace cairn::rpc
