// A Layout as rpc/cairn.capnp has it: for lanes, and for a coordinator's journal. Reading trusts
// nothing: InvalidArgument says what was wrong.
//   Thread  any.
#pragma once
#include <memory>

#include "core/rows/layout.h"
#include "rpc/cairn.capnp.h"

namespace cairn::wire {

// Without the bytes of initial values that were given: a worker makes no rows.
void write(Layout::Builder out, const cairn::Layout& layout);
void write(ShardReplica::Builder out, const cairn::ShardReplica& replica);
void write(ShardLayout::Builder out, const cairn::ShardLayout& shard);
// With them.
void write(VariableLayout::Builder out, const cairn::VariableLayout& variable);

// A variable's number is its place in the list.
std::shared_ptr<const cairn::Layout> read(Layout::Reader in);
cairn::ShardReplica read(ShardReplica::Reader in);
cairn::ShardLayout read(ShardLayout::Reader in);
cairn::VariableLayout read(VariableLayout::Reader in, VariableId id);

// Shards of a cluster, variables of a session, and parts of a variable.
inline constexpr unsigned kShardsMax = 1u << 20;

}  // namespace cairn::wire
