#include "coordinator/engine/control_server.h"
#include "coordinator/engine/engine.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/server.h"

namespace cairn {
namespace {

constexpr Duration kFirstLook = std::chrono::seconds(2);

class Service final : public wire::CoordinatorControl::Server {
 public:
  Service(Engine& engine, rpc::Connection& connection) : engine_(engine), connection_(connection) {}
  // Any peer that was let in may read the status. Only tools and coordinators may change anything.
  kj::Promise<void> status(StatusContext context) override {
    context.getResults().setJson(engine_.status_json().c_str());
    return kj::READY_NOW;
  }
  kj::Promise<void> save(SaveContext context) override { return save_task(context); }
  kj::Promise<void> stop(StopContext) override { return connection_.guard(stop_task()); }

 private:
  rpc::Task<void> stop_task() {
    connection_.allow({rpc::Role::kTool, rpc::Role::kCoordinator}, "CoordinatorControl.stop");
    // A program that has just begun may not have come to its first look.
    rpc::Reactor& reactor = connection_.reactor();
    const Duration until = reactor.now() + kFirstLook;
    while (!engine_.looks_for_stop() && reactor.now() < until)
      co_await reactor.sleep(kFirstLook / 20);
    engine_.request_stop();
  }
  rpc::Task<void> save_task(SaveContext context) {
    connection_.allow({rpc::Role::kTool, rpc::Role::kCoordinator}, "CoordinatorControl.save");
    // The save is a task of the engine's own: it goes on if the connection of the one who asked
    // ends.
    const std::string name = co_await engine_.save_by_policy();
    context.getResults().setCheckpoint(name.c_str());
  }
  Engine& engine_;
  rpc::Connection& connection_;
};

}  // namespace

struct ControlServer::Impl {
  std::unique_ptr<rpc::Acceptor> acceptor;
};

ControlServer::ControlServer(Engine& engine, rpc::Reactor& reactor, rpc::Network& network,
                             ControlServerOptions options)
    : impl_(std::make_unique<Impl>()) {
  rpc::AcceptorOptions accept;
  accept.cluster = options.cluster;
  accept.role = rpc::Role::kCoordinator;
  accept.token = options.token;
  accept.insecure = options.insecure;
  auto serve = [&engine](const rpc::PeerInfo&,
                         rpc::Connection& connection) -> capnp::Capability::Client {
    return wire::CoordinatorControl::Client(kj::heap<Service>(engine, connection));
  };
  std::vector<rpc::Endpoint> endpoints{{&reactor, serve}};
  impl_->acceptor = std::make_unique<rpc::Acceptor>(network, rpc::Address::parse(options.address),
                                                    std::move(accept), std::move(endpoints));
}

ControlServer::~ControlServer() = default;

namespace {

constexpr Duration kAnswerDeadline = std::chrono::seconds(3);

// A connection of its own for one question, on a loop of its own: the tool that asks has no engine.
class Asking {
 public:
  explicit Asking(const ControlAddress& coordinator) {
    rpc::Hello hello;
    hello.cluster = coordinator.cluster;
    hello.token = coordinator.token;
    hello.role = rpc::Role::kTool;
    const auto address = rpc::Address::parse(coordinator.address);
    connection_ = reactor_->wait(network_->connect(*reactor_, address, hello, kAnswerDeadline));
  }
  wire::CoordinatorControl::Client control() {
    return connection_->bootstrap<wire::CoordinatorControl>();
  }
  rpc::Connection& connection() { return *connection_; }
  template <typename T>
  T wait(kj::Promise<T> answer, Duration limit, const std::string& what) {
    return reactor_->wait(reactor_->with_deadline(kj::mv(answer), limit, what));
  }

 private:
  std::unique_ptr<rpc::Reactor> reactor_ = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network();
  std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace

std::string ask_status(const ControlAddress& coordinator) {
  Asking asking(coordinator);
  auto answer = asking.control().statusRequest().send().then(
      [](auto&& response) { return std::string(response.getJson()); });
  return asking.wait<std::string>(kj::mv(answer), kAnswerDeadline,
                                  "asking the coordinator for its status");
}

std::string ask_save(const ControlAddress& coordinator, Duration limit) {
  Asking asking(coordinator);
  auto answer = asking.control().saveRequest().send().then(
      [](auto&& response) { return std::string(response.getCheckpoint()); });
  return asking.wait<std::string>(
      kj::mv(answer), limit, "waiting for the coordinator at " + coordinator.address + " to save");
}

void ask_stop(const ControlAddress& coordinator, Duration limit) {
  Asking asking(coordinator);
  asking.wait<void>(asking.control().stopRequest().send().ignoreResult(), kAnswerDeadline,
                    "asking the program to stop");
  // The answer says only that the program was asked. That it has ended shows in the end of its
  // connection.
  asking.wait<void>(asking.connection().on_disconnect(), limit,
                    "waiting for the program at " + coordinator.address + " to save and end");
}

}  // namespace cairn
