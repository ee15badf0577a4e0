// PsStatus: what a ps says of itself, for people and `cairn status`.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "ps/shard/counters.h"

namespace cairn::ps {

// Thread: the control reactor's; the counters belong to the shards.
struct PsStatus {
  std::uint32_t index = 0;
  ProcessIncarnation incarnation;
  std::uint64_t session = 0;  // the newest that any shard was configured for
  std::string address;
  std::vector<const ShardCounters*> shards;
  std::map<std::uint32_t, const ShardCounters*> places;  // backup places in use, by endpoint
  std::string shards_why;                                // for people: why so many
  std::function<std::size_t()> connections;  // that are open; none when the server has stopped
};

std::string status_json(const PsStatus& status);

}  // namespace cairn::ps
