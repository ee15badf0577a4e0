#include "worker/control_service.h"

#include "rpc/cairn.capnp.h"
#include "rpc/loop/error_wire.h"
#include "rpc/loop/task.h"
#include "rpc/server/seat.h"

namespace cairn::worker {
namespace {

// One for each connection to the control endpoint, with the connection's own seat.
class ControlService final : public wire::WorkerControl::Server {
 public:
  ControlService(ControlHooks hooks, rpc::Connection& connection)
      : hooks_(std::move(hooks)), connection_(connection), seat_(hooks_.holder, connection) {}

  kj::Promise<void> ping(PingContext context) override {
    // A ping is how a coordinator shows life; it goes before anything that may fail.
    seat_.heard();
    return rpc::at_once([&] {
      const WorkerState state = hooks_.state();
      auto out = context.getResults().initStatus();
      out.setIncarnation(state.incarnation.number);
      out.setLanes(state.lanes);
      out.setSession(state.session);
    });
  }
  // Anybody who passed the greeting may ask, which is how `cairn status` looks at a worker.
  kj::Promise<void> status(StatusContext context) override {
    return rpc::at_once([&] { context.getResults().setJson(hooks_.json()); });
  }
  kj::Promise<void> shutdown(ShutdownContext context) override {
    return rpc::at_once([&] {
      connection_.allow({rpc::Role::kCoordinator}, "WorkerControl.shutdown");
      const auto reason = context.getParams().getReason();
      hooks_.shutdown({reason.begin(), reason.size()});
    });
  }
  kj::Promise<void> join(JoinContext context) override {
    return rpc::at_once([&] {
      connection_.allow({rpc::Role::kCoordinator}, "WorkerControl.join");
      seat_.join(context.getParams().getClaim(), hooks_.state().session,
                 context.getResults().initAnswer());
    });
  }

 private:
  ControlHooks hooks_;
  rpc::Connection& connection_;
  rpc::Seat seat_;
};

}  // namespace

capnp::Capability::Client make_control_service(ControlHooks hooks, rpc::Connection& connection) {
  return wire::WorkerControl::Client(kj::heap<ControlService>(std::move(hooks), connection));
}

}  // namespace cairn::worker
