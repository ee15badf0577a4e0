// DataWorkerServer: a whole data worker, at one address.
//
//   DataWorkerServer server(*reactor, *network, *offload, {.address = ...}, {.dispatcher = ...});
#pragma once
#include <memory>
#include <string>

#include "core/base/offload.h"
#include "rpc/loop/reactor.h"
#include "rpc/net/network.h"
#include "service/dispatcher/dispatcher_server.h"
#include "service/worker/data_worker.h"

namespace cairn::service {

// Thread: `reactor`'s. It, `network` and `offload` must outlive the server.
class DataWorkerServer {
 public:
  // Listens, and reports to the dispatcher from now on, whether or not it is there yet.
  //   Errors  the acceptor's.
  DataWorkerServer(rpc::Reactor& reactor, rpc::Network& network, Offload& offload, Door door,
                   DataWorkerOptions options);
  ~DataWorkerServer();  // stop()

  const rpc::Address& address() const;
  std::string status_json() const { return worker_->status_json(); }
  void stop();

 private:
  std::shared_ptr<DataWorker> worker_;
  std::unique_ptr<rpc::Acceptor> acceptor_;
};

}  // namespace cairn::service
