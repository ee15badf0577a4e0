// Which state of a shard rows were read from.
#pragma once
#include <cstdint>

#include "core/base/incarnation.h"

namespace cairn {

// Another lineage always reads as changed.
struct ShardVersion {
  Lineage lineage;            // none: nothing was read from the shard
  std::uint64_t counter = 0;  // pushes applied, or begun, slice by slice
  bool operator==(const ShardVersion&) const = default;
};

}  // namespace cairn
