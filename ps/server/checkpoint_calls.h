// The calls of Shard (rpc/cairn.capnp) that read and write files: requests and answers of
// checkpoint_tasks.h.
#pragma once
#include <capnp/capability.h>

#include <memory>

#include "rpc/cairn.capnp.h"
#include "rpc/loop/task.h"

namespace cairn::ps {

struct ShardHost;

rpc::Task<void> save_and_answer(
    std::shared_ptr<ShardHost> host,
    capnp::CallContext<wire::Shard::SaveParams, wire::Shard::SaveResults> context);
rpc::Task<void> find_and_answer(
    std::shared_ptr<ShardHost> host,
    capnp::CallContext<wire::Shard::FindDatabasesParams, wire::Shard::FindDatabasesResults>
        context);
rpc::Task<void> restore_and_answer(
    std::shared_ptr<ShardHost> host,
    capnp::CallContext<wire::Shard::RestoreParams, wire::Shard::RestoreResults> context);

}  // namespace cairn::ps
