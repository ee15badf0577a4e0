// The worker's control service: is it there, how is it, and the request to end.
#pragma once
#include <capnp/capability.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/incarnation.h"
#include "rpc/net/connection.h"
#include "rpc/server/holder.h"

namespace cairn::worker {

struct WorkerState {
  ProcessIncarnation incarnation;
  std::uint32_t lanes = 0;
  std::uint64_t session = 0;
};

// Thread: the control reactor's, where all three are called.
struct ControlHooks {
  std::function<WorkerState()> state;
  std::function<std::string()> json;                        // for people
  std::function<void(const std::string& reason)> shutdown;  // called once the answer is on its way
  std::shared_ptr<rpc::Holder> holder;                      // the coordinator that it works for
};

// `connection` outlives what is returned, as rpc::Endpoint::serve has it.
capnp::Capability::Client make_control_service(ControlHooks hooks, rpc::Connection& connection);

}  // namespace cairn::worker
