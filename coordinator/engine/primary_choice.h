// Which of a shard's places answers for its rows from now on.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/rows/layout.h"

namespace cairn {

struct PlaceNow {
  ShardReplica replica;  // with the process that was there last
  bool there = false;    // it is connected
};

struct PrimaryChoice {
  std::size_t place = 0;  // of the places given
  bool has_rows = false;  // its process has every update that was answered
};

// It is one of the places that are there: the primary of the layout, if its process is the same;
// else a backup that is in sync; else, once no process that has the rows can come back, or if it is
// not waited for, any place, which is then rebuilt. None: nobody can answer yet. Pure.
//
// `sound`: rows of the layout's processes are what they should be; else all are to be rebuilt.
// A process is known to be gone only once another one answers at its address.
std::optional<PrimaryChoice> choose_primary(const std::vector<PlaceNow>& places,
                                            const ShardLayout& layout, bool sound,
                                            bool wait_for_rows);

}  // namespace cairn
