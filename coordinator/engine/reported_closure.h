// ReportedClosure: what a worker's status says of one closure that has begun on a lane of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/engine/stuck_watch.h"

namespace cairn {

struct ReportedClosure {
  std::uint64_t sequence = 0;
  // kReading if the worker gives no activity, as an older one, or one that is not known here.
  ClosureProgress::Stage stage = ClosureProgress::Stage::kReading;
  std::string doing;           // "pulling from": for people
  double ps = -1, shard = -1;  // that it has to do with; below 0: none
  double seconds = 0;          // it does that
};

// The closures in a worker's status, by lane. Nothing that a worker says of itself is taken on
// trust: a part that makes no sense reads as if it were missing.
std::vector<std::vector<ReportedClosure>> reported_closures(const std::string& status);

}  // namespace cairn
