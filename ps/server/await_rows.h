// Awaiting a request that waits for rows.
#pragma once
#include <kj/async.h>

#include <cstdint>
#include <memory>

#include "ps/shard/requests.h"

namespace cairn::ps {

struct ShardHost;

// Resolves when the request's wait is over: with the push's result, or with why there is none.
// Dropping the promise, as the end of a connection does, gives the request up.
kj::Promise<PushResult> await_rows(std::shared_ptr<ShardHost> host, std::uint64_t wait);

}  // namespace cairn::ps
