// Requests of rpc/cairn.capnp as the shard's plain structs. Spans refer to the message: keep it while they are used.
#pragma once
#include <vector>

#include "ps/applied.h"
#include "ps/requests.h"
#include "rpc/cairn.capnp.h"

namespace cairn::ps {

// A pull or push with the headers that its spans refer to.
struct DecodedPull {
  std::vector<ReadHeader> headers;
  PullRequest request;
};
struct DecodedPush {
  std::vector<UpdateHeader> headers;
  PushRequest request;
};

// Errors  InvalidArgument: a malformed blob, an unknown encoding or rule.  Thread: any.
StepContext read_step(wire::Step::Reader in);
DecodedPull read_pull(wire::Shard::PullParams::Reader in);
DecodedPush read_push(wire::Shard::PushParams::Reader in);
Configuration read_configuration(wire::Shard::ConfigureParams::Reader in);
std::vector<std::uint64_t> read_alive(wire::Shard::FenceParams::Reader in);
AppliedSet read_applied(wire::AppliedSet::Reader in);
void write(wire::Version::Builder out, const Version& version);
void write(wire::AppliedSet::Builder out, const AppliedSet& set);

}  // namespace cairn::ps
