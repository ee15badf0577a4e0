// Claims and their answers in messages. Texts of the other side go into messages and logs, and are
// cut to size when they are read.
//   Thread  any.
#pragma once
#include <string>

#include "rpc/cairn.capnp.h"
#include "rpc/server/claim.h"

namespace cairn::rpc {

void write(wire::Claim::Builder out, const Claim& claim);
Claim read(wire::Claim::Reader in);
void write(wire::ClaimAnswer::Builder out, const ClaimAnswer& answer);
ClaimAnswer read(wire::ClaimAnswer::Reader in);
// The name of a coordinator, cut to size.
std::string cut_owner(capnp::Text::Reader text);

}  // namespace cairn::rpc
