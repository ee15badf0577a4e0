// The PsControl interface of rpc/cairn.capnp.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "ps/shard/counters.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/holder.h"

namespace cairn::ps {

// A ps process as its control service reports it. Thread: the control reactor's; the counters
// belong to the shards.
struct ControlHost {
  std::uint32_t index = 0;
  ProcessIncarnation incarnation;
  std::uint64_t session = 0;  // the newest that any shard was configured for
  std::string address;
  std::vector<const ShardCounters*> shards;
  std::string shards_why;                    // for people: why so many
  std::function<std::size_t()> connections;  // that are open; none when the server has stopped
  std::function<void(const std::string& reason)> shutdown;
  std::shared_ptr<rpc::Holder> holder;  // the coordinator that it works for
};

std::string status_json(const ControlHost& host);
// `connection` outlives what is returned, as rpc::Endpoint::serve has it.
wire::PsControl::Client serve_control(std::shared_ptr<ControlHost> host,
                                      rpc::Connection& connection);

}  // namespace cairn::ps
