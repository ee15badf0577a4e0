// A data service on sockets and threads, for tests.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "core/base/log.h"
#include "rpc/loop/reactor_thread.h"
#include "service/consumer/data_service_iterator.h"
#include "service/dispatcher/dispatcher_server.h"
#include "service/worker/data_worker_server.h"

namespace cairn::service {

// A dispatcher with two data workers on one thread, and readers on threads of their own.
class OverSockets : public testing::Test {
 protected:
  OverSockets() {
    thread_.run([this] {
      here_ = std::make_unique<Here>();
      DispatcherOptions options;
      options.journal = folder_;
      options.log = [](LogLevel, const std::string&) {};
      here_->dispatcher = std::make_unique<DispatcherServer>(
          thread_.reactor(), *network_, *offload_, system_disk(),
          Door{.address = rpc::Address::parse("127.0.0.1:0")}, options);
      address_ = here_->dispatcher->address();
      for (auto& worker : here_->workers) {
        DataWorkerOptions wanted;
        wanted.dispatcher = address_;
        wanted.log = options.log;
        worker = std::make_unique<DataWorkerServer>(
            thread_.reactor(), *network_, *offload_,
            Door{.address = rpc::Address::parse("127.0.0.1:0")}, wanted);
      }
    });
  }
  ~OverSockets() override {
    thread_.run([this] { here_.reset(); });
    offload_.reset();  // finishes what is being written
    thread_.stop();
    std::filesystem::remove_all(folder_);
  }
  const rpc::Address& address() const { return address_; }
  DataServiceOptions options(ProcessingMode mode) const {
    return {.dispatcher = address_, .job_name = "job", .mode = mode};
  }

 private:
  struct Here {
    std::unique_ptr<DispatcherServer> dispatcher;
    std::unique_ptr<DataWorkerServer> workers[2];
  };
  const std::string folder_ = testing::TempDir() + str("data_service_", random_number());
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network();
  std::unique_ptr<Offload> offload_ = make_thread_offload(2);
  rpc::ReactorThread thread_{"servers"};
  std::unique_ptr<Here> here_;
  rpc::Address address_;
};

}  // namespace cairn::service
