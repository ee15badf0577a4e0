// Which addresses are of the machine that asks.
//   Thread  any.
#pragma once
#include "rpc/net/network.h"

namespace cairn::rpc {

// A Unix socket, or TCP at a loopback address, at one of this host's interfaces, or at its own
// name. A name that would have to be looked up, and a simulated address, count as elsewhere.
bool is_on_this_host(const Address& address);

}  // namespace cairn::rpc
