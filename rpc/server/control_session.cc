#include "rpc/server/control_session.h"

#include <algorithm>
#include <utility>

#include "rpc/loop/error_wire.h"
#include "rpc/loop/task.h"
#include "rpc/server/claim_wire.h"

namespace cairn::rpc {
Endpoint control_endpoint(Reactor& reactor, TaskHooks hooks) {
  auto owner = std::make_shared<TaskOwner>(reactor.clock(), hooks.heard);
  auto shared = std::make_shared<const TaskHooks>(std::move(hooks));
  return {&reactor, [owner, shared](const PeerInfo&, Connection& connection) {
            return wire::TaskControl::Client(kj::heap<ControlSession>(shared, owner, connection));
          }};
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
    out.setOwner(owner_->newest());
    constexpr Duration kMost = std::chrono::hours(24);
    out.setSilentMs(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min(owner_->silent_for(), kMost))
            .count()));
  });
}

// Any peer that passed the greeting may ask, which is how `cairn status` looks at a task.
kj::Promise<void> ControlSession::status(StatusContext context) {
  return at_once([&] { context.initResults().setJson(hooks_->status_json()); });
}

kj::Promise<void> ControlSession::shutdown(ShutdownContext context) {
  return at_once([&] {
    connection_.allow({Role::kCoordinator}, "TaskControl.shutdown");
    hooks_->terms->verify("TaskControl.shutdown", connection_.peer());
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
    Claim claim = read(context.getParams().getClaim());
    claim.term = connection_.peer().term;
    ClaimAnswer answer =
        owner_->join(this, claim, connection_.peer().address, [this] { connection_.close(); });
    if (answer.granted) hooks_->terms->raise(claim.session, claim.term);
    answer.configured = configured;
    write(context.initResults().initAnswer(), answer);
  });
}

}  // namespace cairn::rpc
