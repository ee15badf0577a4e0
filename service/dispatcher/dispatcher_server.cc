#include "service/dispatcher/dispatcher_server.h"

#include "rpc/server/server.h"
#include "service/dispatcher/dispatcher_service.h"

namespace cairn::service {

rpc::AcceptorOptions acceptor_options(const Door& door, rpc::Role role, LogSink log) {
  rpc::AcceptorOptions accept;
  accept.cluster = door.cluster;
  accept.role = role;
  accept.task = door.index;
  accept.incarnation = door.incarnation == 0 ? random_number() : door.incarnation;
  accept.token = door.token;
  accept.insecure = door.insecure;
  accept.log = std::move(log);
  return accept;
}

DispatcherServer::DispatcherServer(rpc::Reactor& reactor, rpc::Network& network, Offload& offload,
                                   Disk& disk, Door door, DispatcherOptions options)
    : reactor_(reactor), door_(std::move(door)) {
  const LogSink log = options.log;
  dispatcher_ = std::make_shared<Dispatcher>(reactor, offload, disk, std::move(options));
  dispatcher_->begin();
  rpc::AcceptorOptions accept = acceptor_options(door_, rpc::Role::kDispatcher, log);
  auto serve = [weak = std::weak_ptr(dispatcher_)](
                   const rpc::PeerInfo&, rpc::Connection& connection) -> capnp::Capability::Client {
    auto dispatcher = weak.lock();
    if (!dispatcher) throw UnavailableError("this dispatcher has stopped");
    return make_dispatcher_service(std::move(dispatcher), connection);
  };
  acceptor_ = std::make_unique<rpc::Acceptor>(network, door_.address, std::move(accept),
                                              std::vector<rpc::Endpoint>{{&reactor_, serve}});
}

DispatcherServer::~DispatcherServer() { stop(); }

const rpc::Address& DispatcherServer::address() const { return acceptor_->address(); }

std::string DispatcherServer::status_json() const {
  return service::status_json(dispatcher_->book());
}

void DispatcherServer::stop() {
  if (acceptor_) acceptor_->stop();
  dispatcher_->end();
}

}  // namespace cairn::service
