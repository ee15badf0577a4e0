// TaskClient: the coordinator's side of the control service of a ps or a worker.
//   Thread  the engine's.
//   Errors  Unavailable once the connection is lost; else what the task reports.
#pragma once
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"
#include "rpc/server/claim.h"

namespace cairn {

class TaskClient {
 public:
  explicit TaskClient(std::unique_ptr<rpc::Connection> connection);
  ~TaskClient();

  kj::Promise<void> ping();
  rpc::Task<std::string> status();  // JSON, for people
  // The newest coordinator that has joined the task, and how long it has been silent.
  struct Owner {
    std::string text;  // for people; empty: none has joined
    Duration silent_for{0};
  };
  rpc::Task<Owner> owner();
  rpc::Task<rpc::ClaimAnswer> join(rpc::Claim claim);
  rpc::Connection& connection() { return *connection_; }

 private:
  struct Stub;
  std::unique_ptr<rpc::Connection> connection_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace cairn
