// Fence: which lanes' incarnations a shard still listens to.
//
// The coordinator numbers incarnations upwards, so naming those that live fences all others ever
// issued: what has to be known grows with the cluster and not with its history. Thread: the shard's
// own.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "core/base/incarnation.h"

namespace cairn::ps {

class Fence {
 public:
  // Shuts out all incarnations up to `newest` that are not among `alive`. Who is shut out stays so,
  // whatever comes later.
  void raise(LaneIncarnation newest, std::span<const LaneIncarnation> alive);
  bool shuts_out(LaneIncarnation incarnation) const {
    return incarnation < end_ && !alive_.contains(incarnation);
  }
  void clear();

 private:
  LaneIncarnation end_;              // above all incarnations that were ever decided upon
  std::set<LaneIncarnation> alive_;  // of those below
};

}  // namespace cairn::ps
