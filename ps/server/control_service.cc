#include "ps/server/control_service.h"

#include "core/base/json.h"
#include "core/base/machine.h"
#include "rpc/loop/error_wire.h"
#include "rpc/loop/memory_use.h"
#include "rpc/loop/task.h"
#include "rpc/server/seat.h"

namespace cairn::ps {
namespace {

// Counters are written by the shard's thread and read by this one. Each is right by itself;
// together they may be of slightly different moments, which a status bears.
std::uint64_t get(const ShardCounters::Number& number) {
  return number.load(std::memory_order_relaxed);
}

Json shard_json(const ShardCounters& shard) {
  const std::uint64_t pushes = get(shard.pushes.calls);
  return {{"open", get(shard.open) != 0},
          {"incarnation", get(shard.incarnation)},
          {"layout_version", get(shard.layout_version)},
          {"tables", get(shard.tables)},
          {"rows", get(shard.rows)},
          {"bytes", get(shard.bytes)},
          {"pulls", get(shard.pulls.calls)},
          {"pulled_rows", get(shard.pulls.rows)},
          {"pulled_bytes", get(shard.pulls.bytes)},
          {"pushes", pushes},
          {"pushed_rows", get(shard.pushes.rows)},
          {"pushed_bytes", get(shard.pushes.bytes)},
          {"duplicates", get(shard.duplicates)},
          {"fenced", get(shard.fenced)},
          {"outdated", get(shard.outdated)},
          {"staleness_mean", pushes == 0 ? 0.0
                                         : static_cast<double>(get(shard.staleness_sum)) /
                                               static_cast<double>(pushes)},
          {"staleness_max", get(shard.staleness_max)},
          {"staged_bytes", get(shard.staged_bytes)},
          {"marks", get(shard.marks)},
          {"restored_rows", get(shard.restored_rows)}};
}

class ControlService final : public wire::PsControl::Server {
 public:
  ControlService(std::shared_ptr<ControlHost> host, rpc::Connection& connection)
      : host_(std::move(host)), connection_(connection), seat_(host_->holder, connection) {}

 protected:
  // The coordinator's heartbeat. The call shows that the holder of this ps lives, and the answer
  // names the process.
  kj::Promise<void> ping(PingContext context) override {
    seat_.heard();
    auto status = context.initResults().initStatus();
    status.setIncarnation(host_->incarnation.number);
    status.setShards(static_cast<std::uint32_t>(host_->shards.size()));
    status.setSession(host_->session);
    return kj::READY_NOW;
  }
  kj::Promise<void> status(StatusContext context) override {
    context.initResults().setJson(status_json(*host_));
    return kj::READY_NOW;
  }
  kj::Promise<void> shutdown(ShutdownContext context) override {
    return rpc::at_once([&] {
      connection_.allow({rpc::Role::kCoordinator}, "PsControl.shutdown");
      const std::string reason(context.getParams().getReason());
      if (host_->shutdown) host_->shutdown(reason);
    });
  }
  // Asked before anything is configured, so that a coordinator that was started by mistake does not
  // end another one's session.
  kj::Promise<void> join(JoinContext context) override {
    return rpc::at_once([&] {
      connection_.allow({rpc::Role::kCoordinator}, "PsControl.join");
      seat_.join(context.getParams().getClaim(), host_->session,
                 context.initResults().initAnswer());
    });
  }

 private:
  std::shared_ptr<ControlHost> host_;
  rpc::Connection& connection_;
  rpc::Seat seat_;
};

}  // namespace

std::string status_json(const ControlHost& host) {
  Json shards = Json::array();
  for (const ShardCounters* shard : host.shards) shards.push_back(shard_json(*shard));
  const Json all = {{"role", "ps"},
                    {"index", host.index},
                    {"incarnation", host.incarnation.number},
                    {"memory_bytes", private_memory_bytes()},
                    {"buffer_bytes", rpc::buffer_bytes()},
                    {"address", host.address},
                    {"session", host.session},
                    {"connections", host.connections ? host.connections() : 0},
                    {"shards_why", host.shards_why},
                    {"shards", std::move(shards)}};
  return json_text(all);
}

wire::PsControl::Client serve_control(std::shared_ptr<ControlHost> host,
                                      rpc::Connection& connection) {
  return kj::heap<ControlService>(std::move(host), connection);
}

}  // namespace cairn::ps
