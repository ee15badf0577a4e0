// Shard as those see it who follow its rows.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

// The process's first incarnation is in the number, so that no other process describes by the same.
Shard::Described Shard::describe() const {
  if (!opened_.now)
    throw UnavailableError(
        "this shard is not open: it was just started, or is being restored; repeat the call");
  Described all{random_key(options_.incarnation.number, layout_.described) | 1, layout_.seed, {}};
  for (const auto& [key, table] : tables_)
    all.tables.push_back(
        {{static_cast<VariableId>(key >> 32), static_cast<std::uint32_t>(key)}, table.get()});
  std::ranges::sort(all.tables, {}, [](const auto& one) { return one.first; });
  return all;
}

void Shard::count_followers(std::size_t subscribers, std::size_t bytes) {
  ShardCounters::set(counters_.follow.subscribers, subscribers);
  ShardCounters::set(counters_.follow.bytes, bytes);
}

}  // namespace cairn::ps
