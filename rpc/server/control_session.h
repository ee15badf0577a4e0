// ControlSession: what a ps or a worker serves on one connection to its control endpoint, which is
// TaskControl of rpc/cairn.capnp: is it there, how is it, end it, and whose it is.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/incarnation.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/last_heard.h"
#include "rpc/server/newest_term.h"
#include "rpc/server/server.h"
#include "rpc/server/task_owner.h"

namespace cairn::rpc {

struct TaskState {
  ProcessIncarnation incarnation;
  std::uint32_t threads = 0;  // shards or lanes
  std::uint64_t session = 0;  // that the task was last configured for; 0: none
};

// The task behind its control service. What the hooks throw goes to the caller.
//   Thread  the control reactor's. They may be called while any control connection stands.
struct TaskHooks {
  std::function<TaskState()> state;
  std::function<std::string()> status_json;  // for people
  std::function<void(const std::string& reason)> shutdown;
  // Told of each coordinator that has joined; shared with the threads that coordinators call.
  std::shared_ptr<NewestTerm> terms = std::make_shared<NewestTerm>();
  // Told of each sign of life of the one that owns this task; shared likewise.
  std::shared_ptr<LastHeard> heard = std::make_shared<LastHeard>();
};

// The control endpoint of a task, with the coordinator that owns it. `reactor` outlives its
// connections.
Endpoint control_endpoint(Reactor& reactor, TaskHooks hooks);

// Thread: the connection's, which outlives it.
class ControlSession final : public wire::TaskControl::Server {
 public:
  ControlSession(std::shared_ptr<const TaskHooks> hooks, std::shared_ptr<TaskOwner> owner,
                 Connection& connection)
      : hooks_(std::move(hooks)), owner_(std::move(owner)), connection_(connection) {}
  ~ControlSession() { owner_->left(this); }
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;

 protected:
  kj::Promise<void> ping(PingContext context) override;
  kj::Promise<void> status(StatusContext context) override;
  kj::Promise<void> shutdown(ShutdownContext context) override;
  kj::Promise<void> join(JoinContext context) override;

 private:
  std::shared_ptr<const TaskHooks> hooks_;
  std::shared_ptr<TaskOwner> owner_;
  Connection& connection_;
};

}  // namespace cairn::rpc
