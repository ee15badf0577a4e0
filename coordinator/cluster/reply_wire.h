// The answers of ps and workers, as the coordinator's plain structs. Nothing is taken on trust:
// InvalidArgument says what was wrong.
//   Thread  any.
#pragma once
#include "coordinator/cluster/lane_client.h"
#include "coordinator/cluster/shard_client.h"
#include "rpc/cairn.capnp.h"

namespace cairn {

// outputs, iterator states, ranges, files of one answer
inline constexpr unsigned kReplyListMax = 1u << 20;

// `worker`: the task that answers, for an error that names none.
LaneReply read_reply(wire::ClosureResult::Reader in, const std::string& worker);
// Checks the reply of a closure that ended well against its function's graph.
// Errors  DataLoss: other outputs, or other iterator states than `takes` ask for.
void verify_reply(const LaneReply& reply, const Graph& graph, std::size_t takes);
ShardVersion read_version(wire::Version::Reader in);
AppliedClosures read_applied(wire::AppliedSet::Reader in);
ShardMark read_mark(wire::Shard::MarkResults::Reader in);
ShardSaved read_saved(wire::Shard::SaveResults::Reader in);

}  // namespace cairn
