// The dispatcher's service, one for each connection.
#pragma once
#include <capnp/capability.h>

#include <memory>

#include "rpc/net/connection.h"
#include "service/dispatcher/dispatcher.h"

namespace cairn::service {

// A dispatcher's status as `cairn-data` shows it: a JSON object.
std::string status_json(const JobBook& book);

// `connection` outlives what is returned, as rpc::Endpoint::serve has it.
capnp::Capability::Client make_dispatcher_service(std::shared_ptr<Dispatcher> dispatcher,
                                                  rpc::Connection& connection);

}  // namespace cairn::service
