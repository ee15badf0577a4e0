// The service of one lane, for one connection. When the connection goes, so do its closures; what
// it registered stays.
#pragma once
#include <capnp/capability.h>

#include <memory>

#include "rpc/net/connection.h"
#include "rpc/server/newest_term.h"
#include "worker/lane/lane.h"

namespace cairn::worker {

// Thread: the lane's.
capnp::Capability::Client make_lane_service(std::shared_ptr<Lane> lane,
                                            std::shared_ptr<const rpc::NewestTerm> terms,
                                            rpc::Connection& connection);

}  // namespace cairn::worker
