// How the memory of a ps with a bound is split.
#pragma once
#include <cstddef>

#include "ps/server/ps_server.h"

namespace cairn::ps {

// Errors  InvalidArgument: too little for so many shards; says how much is needed.
void verify_memory_limit(const PsServerOptions& options);
// A shard's share for the rows of all its tables, with what finds them: what is left by the process
// itself, messages, writes that are under way, and, while a checkpoint is written, copies of rows
// and a run.
std::size_t memory_for_rows(const PsServerOptions& options);
// See ShardHost.
std::size_t run_bytes(std::size_t memory_for_rows);

}  // namespace cairn::ps
