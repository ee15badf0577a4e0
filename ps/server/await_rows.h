// Awaiting a request that waits: for rows, or for room to copy them aside.
#pragma once
#include <kj/async.h>

#include <cstdint>
#include <memory>

#include "core/base/clock.h"
#include "ps/shard/requests.h"

namespace cairn::ps {

struct ShardHost;

// Less than the callers' deadlines (ShardLinkOptions::call_deadline, and the coordinator's for a
// round): they are told what was waited for, instead of taking the shard for lost.
inline constexpr Duration kPushPatience = std::chrono::seconds(20);
inline constexpr Duration kRoundPatience = std::chrono::minutes(4);

// Resolves when the request's wait is over: with the push's result, or with why there is none.
// Dropping the promise, as the end of a connection does, gives the request up.
//   Errors  Unavailable: `patience` has passed; says what the request waited for. It was given up.
kj::Promise<PushResult> await_rows(std::shared_ptr<ShardHost> host, std::uint64_t wait,
                                   Duration patience = kPushPatience);

}  // namespace cairn::ps
