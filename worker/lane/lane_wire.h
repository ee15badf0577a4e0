// The worker's side of rpc/cairn.capnp: requests to a lane and its answers. Reading trusts nothing:
// InvalidArgument says what was wrong.
#pragma once
#include <cstdint>

#include "rpc/cairn.capnp.h"
#include "worker/lane/closure_run.h"
#include "worker/lane/lane_group.h"

namespace cairn::worker {

ClosureRun read(wire::Closure::Reader in);
GroupConfig read(wire::Lane::JoinGroupParams::Reader in);
void write(wire::ClosureResult::Builder out, const ClosureResult& result);
// A bound on what write() takes, in words.
std::uint64_t message_words(const ClosureResult& result);

}  // namespace cairn::worker
