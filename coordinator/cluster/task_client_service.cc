#include "coordinator/cluster/task_client.h"
#include "rpc/cairn.capnp.h"
#include "rpc/server/claim_wire.h"

namespace cairn {

struct TaskClient::Stub {
  wire::TaskControl::Client control;
};
TaskClient::TaskClient(std::unique_ptr<rpc::Connection> connection)
    : connection_(std::move(connection)),
      stub_(std::make_unique<Stub>(Stub{connection_->bootstrap<wire::TaskControl>()})) {}
TaskClient::~TaskClient() = default;

kj::Promise<void> TaskClient::ping() { return stub_->control.pingRequest().send().ignoreResult(); }

rpc::Task<std::string> TaskClient::status() {
  auto response = co_await stub_->control.statusRequest().send();
  co_return std::string(response.getJson());
}

rpc::Task<TaskClient::Owner> TaskClient::owner() {
  auto response = co_await stub_->control.pingRequest().send();
  const auto status = response.getStatus();
  co_return Owner{rpc::cut_owner(status.getOwner()),
                  std::chrono::milliseconds(status.getSilentMs())};
}

rpc::Task<rpc::ClaimAnswer> TaskClient::join(rpc::Claim claim) {
  auto request = stub_->control.joinRequest();
  rpc::write(request.initClaim(), claim);
  auto response = co_await request.send();
  co_return rpc::read(response.getAnswer());
}

}  // namespace cairn
